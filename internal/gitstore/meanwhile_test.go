package gitstore

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A meanwhile does something before the guest's objects are read.
type meanwhile struct {
	direct
	do func()
}

func (m meanwhile) Git(ctx context.Context, dir string, in io.Reader, out io.Writer, args ...string) error {
	if args[0] == "pack-objects" {
		m.do()
	}
	return m.direct.Git(ctx, dir, in, out, args...)
}

// Another session of the repository ends while this one publishes: the commit that was
// its pin is gone.
func TestAnotherSessionEnds(t *testing.T) {
	w := newWorld(t, newHost(t))
	pin := w.host("commit-tree", "-p", "HEAD", "-m", pinSubject("other"), "HEAD^{tree}")
	w.host("update-ref", "refs/bawn/other/pin", pin)
	ended := false
	w.store.untrusted = func() (Untrusted, error) {
		return meanwhile{direct{w.store.View()}, func() {
			if ended {
				return
			}
			w.host("update-ref", "-d", "refs/bawn/other/pin")
			if err := os.Remove(filepath.Join(w.ws, ".git/objects", pin[:2], pin[2:])); err != nil {
				t.Error(err)
			}
			ended = true
		}}, nil
	}
	w.guest("commit", "-q", "--allow-empty", "-m", "of the guest")
	if r := w.close(); !r.Quiet() || !ended {
		t.Errorf("the other session has ended: %v; %+v", ended, r)
	}
	if got := w.host("log", "-1", "--format=%s"); got != "of the guest" {
		t.Errorf("main is at %q", got)
	}
}

// What could not be given to the guest was not deleted by it, and is given later.
func TestNotPulled(t *testing.T) {
	for name, c := range map[string]struct{ lock, err string }{
		"nothing is pinned":   {".git/refs/bawn/SESSION/pin.lock", "pin.lock"},
		"the first ref alone": {"private:refs/heads/b.lock", errBusy.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newHost(t))
			if err := w.store.Pin(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.host("branch", "a")
			w.host("branch", "b")
			w.host("branch", "c")
			w.host("branch", "-D", "side")
			lock, private := strings.CutPrefix(c.lock, "private:")
			if private {
				lock = w.private(lock)
			} else {
				lock = filepath.Join(w.ws, strings.ReplaceAll(lock, "SESSION", w.opts.Session))
			}
			write(t, lock, "")
			if _, err := w.store.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("control: %v", err)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			w.quiet()
			w.agree()
		})
	}
}
