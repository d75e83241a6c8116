package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestExamine(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	r := Examine()
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	if !r.Healthy() || r.Provider != "native" || len(r.Capabilities) == 0 || !strings.HasPrefix(r.System, "Linux ") {
		t.Errorf("got %+v", r)
	}
}

func TestHealthy(t *testing.T) {
	cases := []struct {
		checks []Check
		want   bool
	}{
		{nil, false}, // nothing was tried
		{[]Check{{OK: true, Needed: true}}, true},
		{[]Check{{OK: true, Needed: true}, {Needed: true}}, false},
		{[]Check{{OK: true, Needed: true}, {}}, true}, // not needed
	}
	for _, c := range cases {
		if got := (Report{Checks: c.checks}).Healthy(); got != c.want {
			t.Errorf("%+v: got %v", c.checks, got)
		}
	}
}

// TestJudge shows that the trial notices each effect it looks for.
func TestJudge(t *testing.T) {
	text := "done\n"
	cases := map[string]func(ws, out string) string{
		"no end":     func(string, string) string { return "" },
		"no write":   func(ws, _ string) string { os.Remove(filepath.Join(ws, "inside")); return text },
		"outside":    func(_, out string) string { touch(t, out, "outside"); return text },
		"protected":  func(ws, _ string) string { touch(t, ws, ".envrc"); return text },
		"credential": func(string, string) string { return "secret\nLEAKED\ndone\n" },
	}
	for name, effect := range cases {
		ws, out := t.TempDir(), t.TempDir()
		touch(t, ws, "inside")
		if err := judge(ws, out, text); err != nil {
			t.Fatalf("all well: %v", err)
		}
		if err := judge(ws, out, effect(ws, out)); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
