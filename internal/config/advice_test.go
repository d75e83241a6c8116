package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestWriteAdvice: what is advised names the setting that closes the place, and
// following it opens the place.
func TestWriteAdvice(t *testing.T) {
	for _, c := range []struct {
		name, managed, user, project string
		flags                        Flags
		path, place                  string // below the workspace's parent
		want                         string
	}{
		{"outside", "", "", "", Flags{}, "out/f", "out", "start the session with --rw ~/out"},
		{"inside already", "", "", "", Flags{}, "ws/f", "ws", ""},
		{"mode by flag", "", "", "", Flags{Mode: ptr("plan")}, "ws/f", "ws", `mode "plan" (--mode) lets a session write nothing; start it with --mode normal`},
		{"mode of a file", "", "mode='plan'", "", Flags{}, "ws/f", "ws", `mode "plan" (~/.config/bawn/config.toml:1:1) lets a session write nothing; start it with --mode normal`},
		{"mode, outside", "", "mode='plan'", "", Flags{}, "out/f", "out", "--mode normal and --rw for this place"},
		{"mode pinned", "pinned=['mode']\nmode='plan'", "", "", Flags{}, "ws/f", "ws", "mode is pinned at "},
		{"profile by flag", "", "", "", Flags{Profile: ptr("readonly")}, "ws/f", "ws", `profile "readonly" keeps ~/ws from being written; choose another with --profile`},
		{"profile by flag, below", "", "", "", Flags{Profile: ptr("readonly")}, "ws/d/f", "ws/d", "start the session with --rw ~/ws/d"},
		{"profile of a file", "", "isolation.policy_profile='readonly'", "", Flags{}, "ws/f", "ws", "start the session with --rw ~/ws"},
		{"--ro", "", "", "", Flags{RO: []string{"d"}}, "ws/d/f", "ws/d", "--ro keeps ~/ws/d from being written; leave it out"},
		{"ro of a file", "", "isolation.ro=['d']", "", Flags{}, "ws/d/f", "ws/d", "start the session with --rw ~/ws/d"},
		{"ro of the project", "", "", "isolation.ro=['d']", Flags{}, "ws/d/f", "ws/d", "start the session with --rw ~/ws/d"},
		{"ro of the project, further up", "", "", "isolation.ro=['d']", Flags{RW: []string{"d"}}, "ws/d/f", "ws/d", ""},
		{"pinned", "pinned=['isolation.rw']", "", "", Flags{}, "out/f", "out", "--rw: isolation.rw is pinned at "},
		{"through a link", "", "isolation.ro=['link']", "", Flags{Profile: ptr("readonly")}, "ws/f", "ws", `profile "readonly"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := world(t)
			put(t, in.ManagedPath, c.managed)
			put(t, in.User(), c.user)
			put(t, in.projectFile(), c.project)
			put(t, filepath.Join(in.Home, "out/x"), "")
			put(t, filepath.Join(in.Workspace, "d/x"), "")
			if err := os.Symlink(in.Workspace, filepath.Join(in.Home, "link")); err != nil {
				t.Fatal(err)
			}
			in.Flags = c.flags
			path, place := filepath.Join(in.Home, c.path), filepath.Join(in.Home, c.place)
			config := mustLoad(t, in)
			got := strings.ReplaceAll(config.WriteAdvice(path, place), in.Home, "~")
			if got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Fatalf("%q; want %q", got, c.want)
			}
			follow(t, in, got, path, place)
		})
	}
}

// follow does what was advised and wants the path to be writable then.
func follow(t *testing.T, in Inputs, advice, path, place string) {
	t.Helper()
	if strings.Contains(advice, "--mode normal") {
		in.Flags.Mode = ptr("normal")
	}
	if strings.Contains(advice, "--rw ") {
		in.Flags.RW = append(in.Flags.RW, place)
	}
	switch {
	case strings.Contains(advice, "is pinned"):
		return
	case strings.Contains(advice, "another with --profile"):
		in.Flags.Profile = nil
	case strings.Contains(advice, "--ro keeps"):
		in.Flags.RO = nil
	}
	if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), path); got != bawn.ReadWrite {
		t.Errorf("%q was followed, and %s is %v", advice, path, got)
	}
}
