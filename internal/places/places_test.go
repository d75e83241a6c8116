//go:build linux || darwin

package places

import (
	"os"
	"testing"
)

func env(kv map[string]string) func(string) string {
	return func(name string) string { return kv[name] }
}

func TestState(t *testing.T) {
	for _, tt := range []struct {
		xdg, home, want string
	}{{"/x", "/home/u", "/x/bawn"}, {"", "/home/u", "/home/u/.local/state/bawn"}, {"rel", "/home/u", "/home/u/.local/state/bawn"}, {"", "", ""}, {"", "rel", ""}} {
		got, err := State(env(map[string]string{"XDG_STATE_HOME": tt.xdg, "HOME": tt.home}))
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

// A runtime directory that others may enter, or that does not exist, is not used.
func TestRuntime(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[os.FileMode]string{0o700: dir + "/bawn", 0o755: "/s/run", 0o770: "/s/run"} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if got := Runtime(env(map[string]string{"XDG_RUNTIME_DIR": dir}), "/s"); got != want {
			t.Errorf("mode %o: %q; want %q", mode, got, want)
		}
	}
	for _, d := range []string{"", "rel", dir + "/none"} {
		if got := Runtime(env(map[string]string{"XDG_RUNTIME_DIR": d}), "/s"); got != "/s/run" {
			t.Errorf("%q: %q", d, got)
		}
	}
}
