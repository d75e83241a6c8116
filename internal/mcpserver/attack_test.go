package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// TestNothingLeadsOut names files outside of the workspace in every way. The
// control of each is a file inside, named the same way (TestRead,
// TestLinksInside).
func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(r.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Dir(r.out)
	link(r.out, "file-link")
	link("../secret.txt", "relative-link")
	link(outside, "dir-link")
	link("..", "up")
	link("file-link", "link-to-link")
	link("/proc/self/root"+outside, "magic")
	link(outside+"/made.txt", "dangling")
	for _, name := range []string{
		"../secret.txt", "src/../../secret.txt", "./../secret.txt", r.out, r.ws + "/../secret.txt", "/proc/self/cwd/../secret.txt", r.ws + "x/y",
		"file-link", "relative-link", "dir-link/secret.txt", "up/secret.txt", "link-to-link", "magic/secret.txt", "src/../up/secret.txt", r.ws + "/dir-link/secret.txt", "a\x00/../../secret.txt",
	} {
		before := len(r.calls)
		for tool, a := range map[string]args{
			"read": {"path": name}, "write": {"path": name, "content": "pwned"}, "edit": {"path": name, "old": "outside", "new": "pwned"}, "grep": {"path": name, "pattern": "out"},
		} {
			if got := r.bad(tool, a, ""); strings.Contains(got, "outside\n") || strings.Contains(got, "secret.txt:1") {
				t.Errorf("%s %q tells %q", tool, name, got)
			}
		}
		if len(r.calls) != before {
			t.Errorf("%q reached the judge as %q", name, r.last())
		}
	}
	for _, name := range []string{"..", "up", "dir-link", outside, "/", "/etc"} {
		r.bad("glob", args{"pattern": "**", "path": name}, "")
		r.bad("grep", args{"pattern": "out", "path": name}, "")
		r.bad("exec", args{"command": "cat secret.txt", "dir": name}, "")
	}
	r.bad("write", args{"path": "dangling", "content": "pwned"}, "leads out")
	r.bad("write", args{"path": "dir-link/new/x", "content": "pwned"}, "")
	r.bad("write", args{"path": "../new/x", "content": "pwned"}, "leads out")
	if data, _ := os.ReadFile(r.out); string(data) != "outside\n" {
		t.Errorf("the file outside is %q", data)
	}
	if names, _ := os.ReadDir(outside); len(names) != 2 {
		t.Errorf("outside is now %v", names)
	}
	if got := r.good("grep", args{"pattern": "outside"}, ""); strings.Contains(got, "secret") {
		t.Errorf("the walk followed a link: %q", got)
	}
}

// TestLinksInside: a link is judged as what it leads to, so that no name of a
// project's choice hides a file that is protected.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.deny = func(a bawn.Action) bool { return strings.HasSuffix(a.Resource, "/.env") }
	for _, l := range [][2]string{{"src/main.go", "fine.txt"}, {".env", "notes.txt"}, {"../.env", "src/config"}, {r.ws + "/.env", "absolute"}, {".", "here"}} {
		if err := os.Symlink(l[0], filepath.Join(r.ws, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	r.good("read", args{"path": "fine.txt"}, "package main")
	if r.last() != r.ws+"/src/main.go" {
		t.Errorf("judged %q", r.last())
	}
	for _, name := range []string{".env", "notes.txt", "src/config", "absolute", "here/.env", "here/notes.txt", "src/../.env"} {
		if got := r.bad("read", args{"path": name}, "denied: the test says no (rule test:no)\nbawn: ask the test"); strings.Contains(got, "hunter2") {
			t.Errorf("%q tells %q", name, got)
		}
		r.bad("write", args{"path": name, "content": "x"}, "denied")
		r.bad("edit", args{"path": name, "old": "hunter2", "new": "x"}, "denied")
		if got := r.bad("grep", args{"path": name, "pattern": "TOKEN"}, "denied"); strings.Contains(got, "hunter2") {
			t.Errorf("grep %q tells %q", name, got)
		}
	}
	if got := r.good("grep", args{"pattern": "TOKEN"}, "1 files that match may not be read"); strings.Contains(got, "hunter2") {
		t.Errorf("grep tells %q", got)
	}
	if r.has(".env") != "TOKEN=hunter2\n" {
		t.Error("it was changed")
	}
	r.deny = nil
	r.good("grep", args{"pattern": "TOKEN"}, "hunter2") // the control
	r.good("read", args{"path": "notes.txt"}, "hunter2")
}

// TestSwappedFileIsNotRead: between the judgement and the opening the name
// becomes a link to what was not judged.
func TestSwappedFileIsNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	name := filepath.Join(r.ws, "a.txt")
	r.good("read", args{"path": "a.txt"}, "one") // the control
	r.deny = func(a bawn.Action) bool {
		if a.Resource == name {
			_ = os.Remove(name)
			_ = os.Symlink(".env", name)
		}
		return false
	}
	if got, _ := r.call("read", args{"path": "a.txt"}); strings.Contains(got, "hunter2") {
		t.Errorf("got %q", got)
	}
	r.call("write", args{"path": "src/main.go", "content": "x"})
	r.deny = func(a bawn.Action) bool {
		_ = os.Remove(r.ws + "/src/main.go")
		_ = os.Symlink("../.env", r.ws+"/src/main.go")
		return false
	}
	r.call("write", args{"path": "src/main.go", "content": "pwned"})
	if r.has(".env") != "TOKEN=hunter2\n" {
		t.Errorf("the link was followed: %q", r.has(".env"))
	}
}

// TestDenied: nothing happens that the judge did not allow. The control is each
// call with a judge that allows.
func TestDenied(t *testing.T) {
	t.Parallel()
	calls := map[string]args{
		"read": {"path": "a.txt"}, "write": {"path": "made/x.txt", "content": "x"}, "edit": {"path": "a.txt", "old": "one", "new": "ONE"},
		"glob": {"pattern": "*"}, "grep": {"pattern": "one"}, "exec": {"command": "echo one > ran"}, "request_permission": {"host": "example.org", "why": "x"},
	}
	yes := newRig(t, func(o *Options) {
		o.Request = func(context.Context, []string, string) (bool, string, error) { return true, "ok", nil }
	})
	for tool, a := range calls {
		yes.good(tool, a, "")
	}
	for name, change := range map[string]func(*Options){
		"no judge": func(o *Options) { o.Judge = nil },
		"denied":   func(o *Options) { o.Judge = func(context.Context, Call) (Verdict, error) { return Verdict{}, nil } },
		"an error": func(o *Options) {
			o.Judge = func(context.Context, Call) (Verdict, error) { return Verdict{Allowed: true}, errors.New("broken") }
		},
	} {
		r := newRig(t, change)
		for tool, a := range calls {
			r.bad(tool, a, "bawn: denied: ")
		}
		if r.has("a.txt") != "one\ntwo\nthree\n" || !strings.HasPrefix(r.has("ran"), "error") || !strings.HasPrefix(r.has("made"), "error") {
			t.Errorf("%s: something happened", name)
		}
	}
}

// TestOnlyTheJudgedTextRuns: not what was asked for, but what was judged.
func TestOnlyTheJudgedTextRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Judge = func(context.Context, Call) (Verdict, error) {
			return Verdict{Allowed: true, Canonical: "echo judged $X", Env: []string{"X=env"}}, nil
		}
	})
	r.good("exec", args{"command": "echo asked"}, "judged env\n")
	none := newRig(t, func(o *Options) {
		o.Judge = func(context.Context, Call) (Verdict, error) { return Verdict{Allowed: true}, nil }
	})
	none.bad("exec", args{"command": "echo asked"}, "no form")
	noShell := newRig(t, func(o *Options) { o.Shell = "" })
	noShell.bad("exec", args{"command": "echo asked"}, "no shell")
	handed := newRig(t, func(o *Options) { o.Judge, o.Handed = nil, true }) // the shell's session socket judges
	handed.good("exec", args{"command": "echo asked"}, "asked\n")
}

func TestShellReadsNoFileOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("rc", "echo pwned\n")
	env := []string{"BASH_ENV=" + r.ws + "/rc", "ENV=" + r.ws + "/rc", "BASH_FUNC_ls%%=() { echo pwned; }", "KEEP=1"}
	if got := strings.Join(quietly(env), " "); got != "KEEP=1" {
		t.Errorf("got %q", got)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	var want []string
	r := newRig(t, func(o *Options) {
		o.Request = func(_ context.Context, w []string, why string) (bool, string, error) {
			want = append(w, why)
			return w[1] == "example.org", "the human says\x1b so", nil
		}
	})
	r.good("request_permission", args{"host": "example.org", "why": "x"}, `granted: the human says\x1b so`)
	if got := fmt.Sprint(want); got != "[--allow example.org x]" {
		t.Errorf("asked %s", got)
	}
	r.bad("request_permission", args{"command": []string{"git", "push"}, "why": "y"}, "the human says")
	if got := fmt.Sprint(want); got != "[-- git push y]" {
		t.Errorf("asked %s", got)
	}
	r.bad("request_permission", args{"why": "x"}, "either")
	r.bad("request_permission", args{"host": "--", "why": "x"}, "is invalid")
	r.bad("request_permission", args{"host": "a", "command": []string{"b"}, "why": "x"}, "either")
}

// TestNobodyAnswers: a decision that does not come in time is a denial, which a
// client hears before it gives up.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Patience = 50 * time.Millisecond
		o.Judge = func(ctx context.Context, _ Call) (Verdict, error) {
			<-ctx.Done()
			return Verdict{Allowed: true, Canonical: "true"}, nil // too late
		}
		o.Request = func(ctx context.Context, _ []string, _ string) (bool, string, error) {
			<-ctx.Done()
			return true, "too late", nil
		}
	})
	r.bad("read", args{"path": "a.txt"}, "nobody did within 50ms")
	r.bad("exec", args{"command": "true"}, "nobody did within 50ms")
	r.bad("request_permission", args{"host": "example.org", "why": "x"}, "nobody did within 50ms")
}

func TestWorkspaceMustBeOne(t *testing.T) {
	t.Parallel()
	for _, ws := range []string{"", "relative", "/nowhere/at/all", "/etc/hostname", "/tmp/../tmp"} {
		if s, err := newServer(Options{Workspace: ws}); err == nil {
			s.root.Close()
			t.Errorf("%q is a workspace", ws)
		}
	}
}

// FuzzPaths: whatever is named, what reaches the judge lies in the workspace and
// is what would be opened.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"a", "../x", "l/x", "/etc/passwd", "a/../../b", "./l/../l/up/x", "\x00", "up/..", strings.Repeat("a/", 300)} {
		f.Add(s)
	}
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	ws := dir + "/ws"
	if err := os.MkdirAll(ws+"/a/b", 0o755); err != nil {
		f.Fatal(err)
	}
	for name, to := range map[string]string{"l": "a", "up": "..", "out": "/etc", "a/self": ".", "a/b/top": "../.."} {
		if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
			f.Fatal(err)
		}
	}
	s, err := newServer(Options{Workspace: ws})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := s.locate(name)
		if err != nil {
			return
		}
		defer p.close()
		real, err := filepath.EvalSymlinks(filepath.Dir(p.path))
		if err != nil || real != filepath.Dir(p.path) && p.base != "." && p.base != ".." || !strings.HasPrefix(p.path+"/", ws+"/") {
			t.Fatalf("%q is %q: %v", name, p.path, err)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("**/*.{go,mod}", "a/b.go")
	f.Add("{{,}", "[x")
	f.Add("[", "\xff")
	f.Fuzz(func(t *testing.T, glob, name string) {
		if re, err := pattern(glob); err == nil {
			re.MatchString(name)
		}
	})
}
