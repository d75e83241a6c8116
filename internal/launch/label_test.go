//go:build linux

package launch

import (
	"os"
	"slices"
	"testing"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestSignsOfAGuest: title and prompt are for terminals, and a variable that the user sets
// stays.
func TestSignsOfAGuest(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		in      *os.File
		term    string
		program string
		set     []string
		label   modes.Label
		vars    []string
	}{
		{slave, "xterm", "/bin/sh", nil, modes.Label{Mark: "bawn: ", Name: "sh"}, []string{"debian_chroot=bawn", "PS1=(bawn) $ "}},
		{slave, "xterm", "claude", nil, modes.Label{Mark: "bawn: ", Name: "claude"}, []string{"debian_chroot=bawn"}},
		{slave, "xterm", "/bin/sh", []string{"PS1=mine", "debian_chroot="}, modes.Label{Mark: "bawn: ", Name: "sh"}, nil},
		{slave, "dumb", "/bin/a\x1b]2;x\a", nil, modes.Label{}, []string{"debian_chroot=bawn"}},
		{slave, "xterm", "/bin/a\x1b]2;x\a", nil, modes.Label{Mark: "bawn: ", Name: `a\x1b]2;x\x07`}, []string{"debian_chroot=bawn"}},
		{null, "xterm", "/bin/sh", nil, modes.Label{}, nil},
	} {
		w := &verb.World{Stdin: tt.in, Stdout: slave, Environ: []string{"TERM=" + tt.term}}
		label := Label(w, Mark, tt.program)
		if label.Mark != tt.label.Mark || label.Name != tt.label.Name {
			t.Errorf("%q at %q: label %q %q", tt.program, tt.term, label.Mark, label.Name)
		}
		if vars := prompts(w, tt.program, tt.set); !slices.Equal(vars, tt.vars) {
			t.Errorf("%q with %q: %q; want %q", tt.program, tt.set, vars, tt.vars)
		}
	}
}
