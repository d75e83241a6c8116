package gitstore

import (
	"errors"
	"strings"
	"testing"
)

// What the human makes during the session is the human's: the guest's deletion of it
// asks, and the deletion of what the session has made is carried out.
func TestDeletedRefsOfTheHuman(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.host("branch", "theirs", "main")
	w.host("tag", "t1", "main")
	w.guest("branch", "mine")
	w.guest("branch", "moved")
	w.guest("tag", "t2")
	w.quiet()
	w.host("update-ref", "refs/heads/moved", "main~1") // the human's from here on
	w.quiet()
	w.agree()
	theirs := w.host("rev-parse", "t1")
	w.guest("branch", "-D", "theirs", "mine", "moved")
	w.guest("tag", "-d", "t1", "t2")
	r := w.sync()
	if got, want := w.host("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags"), "main\nmoved\nside\ntheirs\nt1\nv0"; got != want {
		t.Errorf("the host has %q, want %q", got, want)
	}
	if len(r.Questions) != 3 {
		t.Errorf("%+v", r)
	}
	w.guest("tag", "t1", "main~1") // made again, it is another
	w.sync()
	if got := w.host("rev-parse", "t1"); got != theirs {
		t.Errorf("the human's tag moved to %s", got)
	}
	w.guest("branch", "on")
	w.quietBut(3)
	w.host("checkout", "-q", "on")
	w.guest("branch", "-D", "on")
	c := w.collected()
	if err := c.carry(t.Context()); err != nil && !errors.Is(err, errBusy) {
		t.Fatal(err)
	}
	w.host("rev-parse", "--verify", "refs/heads/on") // the human works on it
}

// collected is what a sync has compared, before it does anything.
func (w *world) collected() *changes {
	w.t.Helper()
	u := w.store.Units[0]
	private, err := look(u.private, u.Rel, u.Size)
	host, err2 := look(u.host, u.Rel, u.Size)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	c := &changes{store: w.store, unit: u, host: host, private: private}
	c.collect()
	return c
}

// quietBut is sync where no more questions come up than those that there were.
func (w *world) quietBut(questions int) {
	w.t.Helper()
	if r := w.sync(); len(r.Questions) != questions || len(r.Problems) > 0 {
		w.t.Fatalf("a report: %+v", r)
	}
}

// A stash that the human has made during the session is not dropped with the
// guest's own, above or below it.
func TestDroppedStashOfTheHuman(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.edit("f", "guest\n")
	w.guest("stash", "push", "-qm", "of the guest")
	w.quiet()
	w.edit("f", "human\n")
	w.host("stash", "push", "-qm", "of the human")
	w.quiet()
	w.same("stash", "list")
	w.guest("stash", "clear")
	if r := w.sync(); len(r.Questions) != 1 || !strings.Contains(r.Questions[0], "dropped 1 stashes of yours") {
		t.Errorf("%+v", r)
	}
	if got := w.host("stash", "list", "--format=%s"); got != "On main: of the human" {
		t.Errorf("the host's stack is %q", got)
	}
}

// The human stashes while objects are carried: nothing of it is lost, nor is the
// order mixed up.
func TestStashInTheWindow(t *testing.T) {
	for _, does := range []string{"pop", "push"} {
		t.Run(does, func(t *testing.T) {
			w := newWorld(t, newHost(t))
			w.edit("f", "guest\n")
			w.guest("stash", "push", "-qm", "of the guest")
			w.quiet()
			if does == "pop" {
				w.guest("stash", "drop", "-q")
			} else {
				w.edit("f", "guest too\n")
				w.guest("stash", "push", "-qm", "another of the guest")
			}
			c := w.collected()
			w.edit("f", "human\n")
			w.host("stash", "push", "-qm", "of the human")
			if err := c.carry(t.Context()); !errors.Is(err, errBusy) {
				t.Errorf("%v, want that it is tried again", err)
			}
			w.sync()
			if got := w.host("stash", "list", "--format=%s"); got != "On main: of the human\nOn main: of the guest" {
				t.Errorf("the host's stack is %q", got)
			}
		})
	}
}

// Names that git takes for the beginning of an object ID, and names that come
// together and stand for one another.
func TestNamesThatShadow(t *testing.T) {
	w := newWorld(t, newHost(t))
	id := w.host("rev-parse", "--short=8", "main~1")
	w.guest("update-ref", "refs/heads/"+id, "main")
	w.guest("update-ref", "refs/heads/rel", "main")
	w.guest("update-ref", "refs/tags/rel", "main~1")
	w.guest("update-ref", "refs/heads/dead", "main")
	r := w.sync()
	if len(r.Kept) != 2 {
		t.Errorf("%+v", r)
	}
	if got, want := w.host("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"), "refs/heads/dead\nrefs/heads/main\nrefs/heads/rel\nrefs/heads/side\nrefs/tags/v0"; got != want {
		t.Errorf("the host has %q, want %q", got, want)
	}
	run(t, w.ws, human(), "git", "update-ref", "refs/heads/"+id, "main") // control: git takes it
	if got := w.host("rev-parse", "refs/heads/"+id); got != w.host("rev-parse", "main") {
		t.Errorf("control: %s", got)
	}
}

// Remotes on this machine stay behind: a guest may have made what is there.
func TestKeptRemotes(t *testing.T) {
	list, err := parseConfig(`[remote "origin"]
	url = https://example.com/a.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "scp"]
	url = host.example:a.git
[remote "path"]
	url = /tmp/a
	fetch = +refs/heads/*:refs/remotes/path/*
[remote "file"]
	url = FILE:///tmp/a
[remote "rel"]
	url = ../a:b
[branch "a"]
	remote = origin
	merge = refs/heads/a
[branch "b"]
	remote = /tmp/a
[branch "c"]
	remote = path
`)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, newHost(t))
	if err := w.store.remotes(w.store.Units[0], list); err != nil {
		t.Fatal(err)
	}
	got := w.host("config", "--local", "--get-regexp", `^(remote|branch)\.`)
	want := "remote.origin.url https://example.com/a.git\nremote.origin.fetch +refs/heads/*:refs/remotes/origin/*\nremote.scp.url host.example:a.git\nbranch.a.remote origin\nbranch.a.merge refs/heads/a"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
