package gitstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFollow: what a guest's branches follow is the host's too, and goes with them.
func TestFollow(t *testing.T) {
	from := newHost(t)
	ws := filepath.Join(filepath.Dir(from), "clone")
	run(t, from, human(), "git", "clone", "-q", from, ws)
	run(t, ws, human(), "git", "checkout", "-q", "-b", "mine")
	w := newWorld(t, ws)
	says := func(name string) string {
		out, _ := tryRun(ws, human(), "git", "config", "--get-regexp", "^branch\\."+name+"\\.")
		return strings.ReplaceAll(out, "\n", "; ")
	}
	w.guest("branch", "-q", "--track", "x", "origin/side")
	w.guest("branch", "-q", "--track", "local.1", "main")
	w.guest("config", "branch.mine.remote", "origin") // as "git push -u" does for a branch of the human's
	w.guest("config", "branch.mine.merge", "refs/heads/mine")
	w.guest("config", "branch.mine.rebase", "true")
	w.guest("branch", "-q", "gone")
	w.quiet()
	for name, want := range map[string]string{
		"x":        "branch.x.remote origin; branch.x.merge refs/heads/side",
		"local.1":  "branch.local.1.remote .; branch.local.1.merge refs/heads/main",
		"mine":     "branch.mine.remote origin; branch.mine.merge refs/heads/mine; branch.mine.rebase true",
		"main":     "branch.main.remote origin; branch.main.merge refs/heads/main", // the human's
		"unheard*": "",
	} {
		if got := says(name); got != want {
			t.Errorf("%s follows %q, want %q", name, got, want)
		}
	}
	if out := w.host("status", "-sb"); !strings.Contains(out, "mine...origin/mine") {
		t.Errorf("the host's status: %s", out)
	}
	w.guest("branch", "-qD", "x")
	w.guest("branch", "-q", "-m", "local.1", "local.2")
	w.guest("config", "branch.main.merge", "refs/heads/side")
	w.close()
	for name, want := range map[string]string{
		"x": "", "local.1": "", "local.2": "branch.local.2.remote .; branch.local.2.merge refs/heads/main",
		"main": "branch.main.remote origin; branch.main.merge refs/heads/main",
	} {
		if got := says(name); got != want {
			t.Errorf("in the end %s follows %q, want %q", name, got, want)
		}
	}
}

// TestFollowNothingElse: a guest's configuration has the host's git execute nothing, and
// says nothing of what the human has configured. The control is a plain git that has
// the same lines.
func TestFollowNothingElse(t *testing.T) {
	from := newHost(t)
	ws := filepath.Join(filepath.Dir(from), "clone")
	run(t, from, human(), "git", "clone", "-q", from, ws)
	run(t, ws, human(), "git", "config", "branch.side.pushRemote", "origin")
	run(t, ws, human(), "git", "branch", "-q", "--no-track", "side", "origin/side")
	run(t, ws, human(), "git", "branch", "-q", "--no-track", "theirs")
	w := newWorld(t, ws)
	mark := filepath.Join(t.TempDir(), "executed")
	before := w.host("config", "--list", "--local")
	lines := ""
	for name, kv := range map[string]string{
		"a": "remote = \"ext::sh -c 'touch " + mark + "'\"\n\tmerge = refs/heads/main", "b": "remote = elsewhere\n\tmerge = refs/heads/main", "c": "remote = origin\n\tmerge = refs/tags/v0",
		"d": "remote = origin\n\tmerge = refs/heads/$(x)", "e": "remote = origin\n\tmerge = refs/heads/a\n\tmerge = refs/heads/b", "f": "remote = origin", "g": "remote = origin\n\tmerge = refs/heads/main\n\trebase = interactive",
		"h": "remote = /tmp\n\tmerge = refs/heads/main", "i": "remote = origin\n\tmerge = refs/heads/main\n\tpushRemote = elsewhere", "side": "remote = origin\n\tmerge = refs/heads/main", "theirs": "remote = origin\n\tmerge = refs/heads/main",
		"absent": "remote = origin\n\tmerge = refs/heads/main", "evil\\\"]\\n[core": "remote = origin\n\tmerge = refs/heads/main",
	} {
		lines += "[branch \"" + name + "\"]\n\t" + kv + "\n"
		if len(name) == 1 {
			w.guest("branch", "-q", name, "main")
		}
	}
	lines += "[remote \"elsewhere\"]\n\turl = \"ext::sh -c 'touch " + mark + "'\"\n[core]\n\tfsmonitor = \"touch " + mark + "\"\n[alias]\n\tst = \"!touch " + mark + "\"\n"
	text, err := os.ReadFile(w.private("config"))
	if err != nil {
		t.Fatal(err)
	}
	w.plant("config", string(text)+lines)
	w.sync()
	w.close()
	if after := w.host("config", "--list", "--local"); after != before {
		t.Errorf("the host's configuration was\n%s\nand is\n%s", before, after)
	}
	_, _ = tryRun(ws, human(), "git", "-c", "protocol.ext.allow=always", "fetch", "elsewhere")
	if present(mark) {
		t.Fatal("the guest's words were executed")
	}
	host, err := os.ReadFile(filepath.Join(ws, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(ws, ".git/config"), string(host)+lines)
	_, _ = tryRun(ws, human(), "git", "-c", "protocol.ext.allow=always", "fetch", "elsewhere")
	if !present(mark) {
		t.Error("control: nothing was executed")
	}
}

// TestTrack: the first push of a branch that the session has made gives the host the ref
// that the branch follows, and nothing else moves the host's refs of remotes.
func TestTrack(t *testing.T) {
	from := newHost(t)
	ws := filepath.Join(filepath.Dir(from), "clone")
	run(t, from, human(), "git", "clone", "-q", from, ws)
	run(t, ws, human(), "git", "branch", "-q", "--no-track", "theirs")
	w := newWorld(t, ws)
	before := w.host("for-each-ref", "refs/remotes")
	push := func(name, commit string) { // what "git push -u" comes to
		w.guest("config", "branch."+name+".remote", "origin")
		w.guest("config", "branch."+name+".merge", "refs/heads/"+name)
		w.guest("update-ref", "refs/remotes/origin/"+name, commit)
	}
	w.guest("checkout", "-q", "-b", "mine")
	w.guest("commit", "-q", "--allow-empty", "-m", "one")
	push("mine", "mine")
	push("theirs", "theirs")                                    // a branch of the human's
	w.guest("update-ref", "refs/remotes/origin/main", "mine")   // which the human has
	w.guest("update-ref", "refs/remotes/origin/forged", "mine") // which no branch follows
	w.guest("branch", "-q", "behind", "main")
	push("behind", "mine") // more than the branch has
	w.quiet()
	w.quiet()
	if out := w.host("status", "-sb"); !strings.HasPrefix(out, "## mine...origin/mine") || strings.Contains(out, "gone") {
		t.Errorf("the host's status: %s", out)
	}
	w.host("update-ref", "-d", "refs/remotes/origin/mine")
	if out := w.host("for-each-ref", "refs/remotes"); out != before {
		t.Errorf("refs of remotes were\n%s\nand are\n%s", before, out)
	}
	w.host("update-ref", "refs/remotes/origin/mine", "mine")
	w.guest("commit", "-q", "--allow-empty", "-m", "two")
	w.guest("update-ref", "refs/remotes/origin/mine", "mine")
	w.quiet()
	if got := w.host("log", "-1", "--format=%s", "origin/mine"); got != "two" {
		t.Errorf("after a second push it is at %q", got)
	}
	w.host("update-ref", "refs/remotes/origin/mine", "main") // by a fetch
	w.guest("update-ref", "refs/remotes/origin/mine", "mine~1")
	w.close()
	if got := w.host("rev-parse", "origin/mine"); got != w.host("rev-parse", "main") {
		t.Error("the human's ref of a remote was moved")
	}
}

// TestSparseIsSaid: a sparse checkout that is left on is said at the end, and one that
// was ended, or is the human's, is not.
func TestSparseIsSaid(t *testing.T) {
	for _, c := range []struct {
		host, guest, end string
		want             int
	}{{"", "set", "", 1}, {"", "set", "disable", 0}, {"set", "set", "", 0}, {"", "", "", 0}} {
		ws := newHost(t)
		if c.host != "" {
			run(t, ws, human(), "git", "sparse-checkout", "set", "--no-cone", "/f")
		}
		w := newWorld(t, ws)
		if c.guest != "" {
			w.guest("sparse-checkout", "set", "--no-cone", "/f")
		}
		if c.end != "" {
			w.guest("sparse-checkout", "disable")
		}
		r, err := w.store.Close(t.Context())
		if err != nil || len(r.Questions) != c.want || c.want == 1 && !strings.Contains(r.Questions[0], "sparse") {
			t.Errorf("%+v: %q, %v", c, r.Questions, err)
		}
	}
}
