package session_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// together is how many sessions start at the same moment.
const together = 8

// commits is what each guest does: a file, and a branch of its own with a commit.
const commits = `echo $0 >w$0; cat w$0
tree=$(printf '100644 blob %s\tname\n' $(echo $0 | git hash-object -w --stdin) | git mktree)
git update-ref refs/heads/b$0 $(git -c user.name=a -c user.email=a@b.example commit-tree -p HEAD -m $0 $tree)`

// TestTogether: in a home that Bawn has not been used in, sessions start in one
// workspace at the same moment, and end so. Each does its work, says nothing and leaves
// nothing behind.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name, refs  string
		flags       []string
		rounds, few int
		features    []string
	}{
		{name: "native", refs: "refs/heads/b*", rounds: 10, few: 2},
		{name: "bwrap", refs: "refs/heads/b*", flags: []string{"--provider", "bwrap"}, rounds: 10, few: 1, features: []string{"bwrap"}},
		{name: "copy", refs: "refs/bawn/*/heads/b*", flags: []string{"--copy"}, rounds: 10, few: 1},
		{name: "split", refs: "refs/heads/b*", flags: []string{"--split"}, rounds: 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range testenv.Some(c.rounds, c.few) {
				h := newHome(t, append([]string{"go", "git"}, c.features...)...)
				check(t, testhome.Programs(h.bin, "cmd/bawn", "cmd/bawnd"))
				h.must("git", "init", "-q", "-b", "main")
				h.must("git", "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-q", "--allow-empty", "-m", "first")
				h.together(append(append([]string{"bawn", "run", "-q"}, c.flags...), "--", "sh", "-ec", commits))
				h.quietAfter(c.refs)
			}
		})
	}
}

// must runs a command that has to succeed, and returns what it writes.
func (h *home) must(argv ...string) string {
	h.t.Helper()
	r := h.run(argv...)
	if r.code != 0 {
		h.t.Fatalf("%q: %+v", argv, r)
	}
	return r.out
}

// together starts a command many times at once, each with its number, which is what
// each must write.
func (h *home) together(argv []string) {
	h.t.Helper()
	const limit = 2 * time.Minute
	var out, errs [together]bytes.Buffer
	ended := make(chan error, together)
	for i := range together {
		c := h.command(append(argv, fmt.Sprint(i))...)
		c.Stdout, c.Stderr, c.SysProcAttr = &out[i], &errs[i], &syscall.SysProcAttr{Setsid: true}
		go func() {
			err := c.Start()
			if err == nil {
				timer := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
				defer timer.Stop()
				err = c.Wait()
			}
			if want := fmt.Sprintln(i); err != nil || out[i].String() != want || errs[i].Len() > 0 {
				err = fmt.Errorf("session %d: %v: %q, want %q; %q", i, err, &out[i], want, &errs[i])
			}
			ended <- err
		}()
	}
	for range together {
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	}
}

// quietAfter wants the work of every session that together has started, and nothing
// else of theirs.
func (h *home) quietAfter(refs string) {
	h.t.Helper()
	if list := strings.Fields(h.must("git", "for-each-ref", "--format=%(refname)", refs)); len(list) != together {
		h.t.Errorf("branches: %q, want %d", list, together)
	}
	if out := h.must("git", "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		h.t.Errorf("git fsck: %s", out)
	}
	h.bawn(0, "audit", "verify")
	if list := h.ps(); len(list) != 0 {
		h.t.Errorf("ps lists %v", list)
	}
	for _, pattern := range []string{"run/bawn/sessions/*", ".cache/bawn/users/.tmp-*", "state/bawn/git/*"} {
		left, err := filepath.Glob(filepath.Join(h.dir, pattern))
		if err != nil || len(left) > 0 {
			h.t.Errorf("left behind: %q (%v)", left, err)
		}
	}
	if h.t.Failed() {
		h.t.FailNow()
	}
}
