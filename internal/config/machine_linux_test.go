package config

import (
	"errors"
	"testing"
)

func TestThisMachine(t *testing.T) {
	if m, err := ThisMachine(); err != nil || m.MemoryMB < 64 {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := meminfo([]byte("MemFree: 1 kB\nMemTotal:  2048000 kB\n"), nil); err != nil || m.MemoryMB != 2000 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, data := range []string{"", "MemTotal: 5\n", "MemTotal: x kB\n", "MemTotal: 5 MB\n"} {
		if m, err := meminfo([]byte(data), nil); err == nil {
			t.Errorf("%q: %+v", data, m)
		}
	}
	if _, err := meminfo(nil, errors.ErrUnsupported); err == nil {
		t.Error("no error without a file")
	}
}
