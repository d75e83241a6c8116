package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

// TestSweepSockets: the sweep removes only sockets of dead sessions. It leaves those
// of living sessions, those just made, and files that Bawn did not make.
func TestSweepSockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30)) // for an address of a socket
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const lives, dead, young = "aaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccc"
	old := time.Now().Add(-2 * justMade)
	var want []string
	for name, stays := range map[string]bool{
		lives: true, lives[:AsksName] + ".a": true, lives[:AsksName] + ".a.key": true, lives + ".child.3": true,
		dead: false, dead[:AsksName] + ".a": false, dead[:AsksName] + ".a.key": false, dead + ".child.0": false,
		young: true, "short": true,
	} {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != young {
			if err := os.Chtimes(at, old, old); err != nil {
				t.Fatal(err)
			}
		}
		if stays {
			want = append(want, name)
		}
	}
	// Of sessions that were killed before they were in the registry, or just now.
	const killed, begun, here = "dddddddddddddddddddddddddd", "eeeeeeeeeeeeeeeeeeeeeeeeee", "ffffffffffffffffffffffffff"
	if err := os.WriteFile(filepath.Join(dir, killed+".child"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{begun, here} {
		l, err := sessionsocket.Listen(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if name == begun {
			l.Close()
		}
		some := time.Now().Add(-2 * answering)
		if err := os.Chtimes(filepath.Join(dir, name), some, some); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, here)
	SweepSockets(dir, []attach.Entry{{ID: lives, State: attach.Running}, {ID: dead, State: attach.Dead}, {ID: killed, State: attach.Dead}})
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range left {
		got = append(got, f.Name())
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	SweepSockets(filepath.Join(dir, "none"), nil) // a directory that is not there is no error
}
