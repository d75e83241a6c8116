package layout

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
)

func TestELFNamesWhatIsMissing(t *testing.T) {
	head := beginning("/bin/sh")
	if got := elfInterpreter(head); !strings.HasPrefix(got, "/lib") {
		t.Errorf("the loader of /bin/sh is %q; want one below /lib", got)
	}
	if got := elfInterpreter(static(head)); got != "" {
		t.Errorf("the loader of a static program is %q; want none", got)
	}
	// The same program with another loader and for another machine.
	musl := strings.ReplaceAll(head, "/ld-linux", "/ld-other")
	if why, _ := (&Plan{}).loader(musl); !strings.Contains(why, "ld-other") || !strings.HasSuffix(why, "does not exist") {
		t.Errorf("loader: %q", why)
	}
	foreign := head[:18] + "\xf3\x00" + head[20:]
	if why, _ := wrongFormat(foreign, "x"); !strings.HasPrefix(why, "is a program for riscv64, and this machine is ") {
		t.Errorf("wrong format: %q", why)
	}
	for text, want := range map[string]string{"": "is no program", "hello": "is no program", elfMagic: "damaged", head: "damaged"} {
		if why, _ := wrongFormat(text, "x"); !strings.Contains(why, want) {
			t.Errorf("%.10q: %q; want %q", text, why, want)
		}
	}
}

// static is a 64-bit program without the entry that names its loader (elf(5),
// PT_INTERP).
func static(head string) string {
	b := []byte(head)
	at, size := binary.LittleEndian.Uint64(b[32:]), binary.LittleEndian.Uint16(b[54:])
	for range binary.LittleEndian.Uint16(b[56:]) {
		if binary.LittleEndian.Uint32(b[at:]) == uint32(elf.PT_INTERP) {
			binary.LittleEndian.PutUint32(b[at:], uint32(elf.PT_NULL))
		}
		at += uint64(size)
	}
	return string(b)
}

// FuzzELF: whatever a workspace holds, the header is read within its bounds.
func FuzzELF(f *testing.F) {
	f.Add(beginning("/bin/sh"))
	f.Add(elfMagic + "\x02\x01" + strings.Repeat("\xff", 100))
	f.Add(elfMagic + "\x02\x01" + strings.Repeat("\x00", 26) + "\x40" + strings.Repeat("\x00", 23) + "\xff\xff" + strings.Repeat("\x03\x00\x00\x00", 40))
	f.Fuzz(func(t *testing.T, head string) {
		if name := elfInterpreter(head); len(name) > len(head) {
			t.Errorf("a name of %d bytes from %d", len(name), len(head))
		}
		if why, _ := wrongFormat(head, "x"); why == "" {
			t.Error("no reason")
		}
		(&Plan{}).interpreter("#!" + head)
	})
}
