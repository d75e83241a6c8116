package main

import (
	"os/exec"
	"testing"
)

// TestHook shows that an answer which is no yes is not counted.
func TestHook(t *testing.T) {
	if s, err := hook(exec.Command("/bin/echo", `{"permissionDecision":"allow"}`), "/"); err != nil || s.Wall <= 0 {
		t.Errorf("a yes took %v, %v; want some time", s.Wall, err)
	}
	for _, argv := range [][]string{{"/bin/echo", `{"permissionDecision":"deny"}`}, {"/bin/false"}} {
		if s, err := hook(exec.Command(argv[0], argv[1:]...), "/"); err == nil {
			t.Errorf("%q was counted: %v", argv, s.Wall)
		}
	}
}
