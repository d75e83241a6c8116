package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMountsInTheWorkspaceHold attacks a hidden file and a read-only directory
// in the workspace by every call that moves or removes names. The control is
// the same script without the two mounts.
func TestMountsInTheWorkspaceHold(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	attacks := map[string]string{
		"move the hidden file":       `mv secret got; cat got`,
		"replace the hidden file":    `echo x > t; mv -f t secret && echo PWNED`,
		"remove the hidden file":     `rm -f secret; test -e secret || echo PWNED`,
		"exchange the hidden file":   `echo x > t; python3 -c 'import ctypes;ctypes.CDLL(None).renameat2(-100,b"t",-100,b"secret",2)'; cat t`,
		"link the hidden file":       `ln secret alias; cat alias`,
		"move its directory":         `mv dir dir2; cat dir2/secret`,
		"move the read-only one":     `mv ro ro2; mkdir ro; echo PWNED > ro/new; cat ro/new`,
		"write in the read-only one": `echo PWNED > ro/file; cat ro/file`,
		"remove in the read-only":    `rm -f ro/file; test -e ro/file || echo PWNED`,
		"remove the read-only one":   `rm -rf ro; mkdir ro 2>/dev/null && echo PWNED`,
		"above the read-only one":    `mv up up2; mkdir -p up/ro; echo PWNED > up/ro/new; cat up/ro/new`,
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(attack, "python3") {
				testenv.Need(t, "python3")
			}
			for _, protected := range []bool{false, true} {
				if got := pwned(t, attacked(t, protected), attack); got == protected {
					t.Errorf("protected %v: succeeded %v", protected, got)
				}
			}
		})
	}
}

// attacked is a session in a workspace with things that are protected or not.
func attacked(t *testing.T, protected bool) sandbox.Request {
	t.Helper()
	ws := workspace(t)
	for f, text := range map[string]string{"secret": "PWNED by reading\n", "dir/secret": "PWNED by reading\n", "ro/file": "", "up/ro/file": ""} {
		file := filepath.Join(ws, f)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	req := request(ws)
	if !protected {
		return req
	}
	for path, access := range map[string]bawn.Access{"secret": bawn.Hidden, "dir/secret": bawn.Hidden, "ro": bawn.ReadOnly, "up/ro": bawn.ReadOnly} {
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: filepath.Join(ws, path), Access: access, Why: "test"})
	}
	return req
}

func pwned(t *testing.T, req sandbox.Request, attack string) bool {
	t.Helper()
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := execute(t, p, plan, attack)
	return strings.Contains(text, "PWNED")
}
