package launch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestEngineEnviron: no engine comes from a place that a session writes, also by
// way of a link.
func TestEngineEnviron(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, home := filepath.Join(base, "ws"), filepath.Join(base, "home")
	for _, dir := range []string{filepath.Join(ws, "bin"), home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(ws, "bin"), link); err != nil {
		t.Fatal(err)
	}
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home}, Dir: ws}}
	cfg, err := settings.LoadConfig(&e.World, ws, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	path := "bin:" + ws + "/bin::/usr/bin:" + ws + "//bin/../bin:" + link + ":" + base
	got := engineEnviron([]string{"A=1", "PATH=" + path, "DOCKER_HOST=unix://" + ws + "/d.sock"}, cfg)
	if want := []string{"A=1", "PATH=/usr/bin:" + base}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, host := range []string{"DOCKER_HOST=unix:///run/docker.sock", "DOCKER_HOST=tcp://127.0.0.1:2375"} { // the control
		if got := engineEnviron([]string{host}, cfg); !slices.Equal(got, []string{host}) {
			t.Errorf("got %q, want %q", got, host)
		}
	}
}
