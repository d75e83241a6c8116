package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestRelayIsToldTheLimits: the limits that a file states are those that the
// relay gets.
func TestRelayIsToldTheLimits(t *testing.T) {
	home := t.TempDir()
	ws := filepath.Join(home, "work")
	file := filepath.Join(home, ".config/bawn/config.toml")
	for _, dir := range []string{ws, filepath.Dir(file)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home}, Dir: ws}}
	for text, want := range map[string][2]int64{
		"": {}, "[isolation.resources]\nnet_connections = 7\nnet_out_mb = 9\n": {7, 9},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := settings.LoadConfig(&e.World, ws, config.Flags{Hosts: []string{"a.test"}})
		if err != nil {
			t.Fatal(err)
		}
		req := &sandbox.Request{Session: bawn.Session{ID: "s", Isolation: cfg.Isolation(ws)}, Dir: ws}
		c, err := (&relays{launch: &Launch{}, env: e}).config(req, zone{})
		if got := [2]int64{c.Egress.MaxConns, c.Egress.MaxOutMB}; err != nil || got != want {
			t.Errorf("%q: the relay is told %v, %v; want %v", text, got, err, want)
		}
	}
}
