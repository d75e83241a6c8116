package docker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/symlink"
)

// TestVolumesByLinks: the engine follows links as root, so that what a volume
// names is looked at as every other place is. The control is the human's own link.
func TestVolumesByLinks(t *testing.T) {
	f := facts(1000)
	look := f.Host.Lookup
	to := map[string]string{"/home/ada/p/build": "/srv/data", "/home/ada/alias": "/srv/data"}
	f.Host.Lookup = func(p string) (layout.File, bool) {
		if end, ok := to[p]; ok {
			p = end
		}
		return look(p)
	}
	f.Host.Follow = func(p string) ([]string, string) {
		if end, ok := to[p]; ok {
			return []string{p}, end
		}
		return nil, p
	}
	plan := func(source string) (*Plan, error) {
		flag := "--volume=" + source + ":/data"
		return makePlan(plain(), Options{ExtraArgs: []string{flag}, Allowed: []string{flag}}, f)
	}
	var planted *symlink.PlantedError
	if _, err := plan("/home/ada/p/build"); !errors.As(err, &planted) {
		t.Errorf("a link of the workspace: %v", err)
	}
	p, err := plan("/home/ada/alias")
	if err != nil || !slices.Contains(p.Host.Binds, "/srv/data:/data") || len(p.pins) != 1 || p.pins[0].ID == (layout.Identity{}) {
		t.Errorf("the human's own link: %v, %+v", err, p)
	}
	if _, err := plan("/none"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a source that is not there, which the engine would make: %v", err)
	}
}

// TestPatternsInTheGuest: a pattern counts where the guest has the workspace.
func TestPatternsInTheGuest(t *testing.T) {
	req, f := plain(), facts(1000)
	f.Host.List = func(string) ([]layout.Listed, error) { return nil, nil }
	for _, p := range []string{"/home/ada/p/**/.env", "/home/ada/**/*.pem", "/srv/data/*.key"} {
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: p, Access: bawn.Hidden, Why: "--deny"})
	}
	p, err := makePlan(req, Options{}, f)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/home/ada/**/*.pem", "/workspace/**/*.pem", "/workspace/**/.env", "/srv/data/*.key"}
	if !slices.Equal(p.Inside.Denied, want) {
		t.Errorf("the supervisor denies %q, want %q", p.Inside.Denied, want)
	}
}
