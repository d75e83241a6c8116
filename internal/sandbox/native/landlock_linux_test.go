package native

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestCarveLeavesHiddenPlacesOut(t *testing.T) {
	tree := map[string][]string{
		"/": {"etc", "home", "usr"}, "/etc": {"passwd", "shadow"}, "/home": {"a", "b"}, "/home/a": {".ssh", ".config", "src"},
		"/home/a/.config": {"gh", "vim"},
	}
	got := carve([]string{"/etc/shadow", "/home/a/.ssh", "/home/a/.config/gh", "/home/a/absent"}, func(dir string) []string { return tree[dir] })
	want := []string{"/etc/passwd", "/home/a/.config/vim", "/home/a/src", "/home/b", "/usr"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := carve(nil, func(dir string) []string { return tree[dir] }); !slices.Equal(got, []string{"/etc", "/home", "/usr"}) {
		t.Errorf("nothing hidden: got %v", got)
	}
}

// TestLandlockRung attacks what this rung claims, each time with the same
// attack outside as a control.
func TestLandlockRung(t *testing.T) {
	testenv.Need(t, "landlock", "notify")
	ws := workspace(t)
	out := workspace(t)
	secret := filepath.Join(out, "secret")
	if err := os.WriteFile(secret, []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	attacks := map[string]string{
		"write outside":       `echo x > "$OUT/new"`,
		"rename outside":      `echo x > t; mv t "$OUT/moved"`,
		"link a secret in":    `ln "$OUT/secret" alias`,
		"read a secret":       `cat "$OUT/secret" | grep -q SECRET && touch read-it`,
		"protected name":      `mkdir .vscode`,
		"hook":                `mkdir -p .git/hooks && echo x > .git/hooks/pre-commit`,
		"outlive the session": `(setsid sh -c 'sleep 2; touch outlived' >/dev/null 2>&1 &)`,
	}
	effects := map[string]string{
		"write outside": out + "/new", "rename outside": out + "/moved", "link a secret in": ws + "/alias", "read a secret": ws + "/read-it",
		"protected name": ws + "/.vscode", "hook": ws + "/.git/hooks/pre-commit", "outlive the session": ws + "/outlived",
	}
	for name, attack := range attacks {
		bare(t, ws, out, attack)
		testenv.Until(t, "control: "+name+" without the sandbox", func() bool { return there(effects[name]) })
		os.RemoveAll(effects[name])
		os.RemoveAll(ws + "/.git")
		inLandlock(t, ws, out, secret, attack)
		if name == "outlive the session" {
			time.Sleep(3 * time.Second)
		}
		if there(effects[name]) {
			t.Errorf("%s: %s is there", name, effects[name])
		}
		os.RemoveAll(effects[name])
	}
	text := inLandlock(t, ws, out, secret, `echo ok > f; cat f; cat /etc/passwd | wc -l; echo t > $TMPDIR/x && cat $TMPDIR/x; head -c0 /dev/null; cat /proc/self/status | grep -c Seccomp:`)
	if !strings.HasPrefix(text, "ok\n") || !strings.Contains(text, "\nt\n1\n") {
		t.Errorf("ordinary work: got %q", text)
	}
}

func bare(t *testing.T, ws, out, script string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = ws, append(os.Environ(), "OUT="+out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Logf("control: %v: %s", err, text)
	}
}

func there(file string) bool { _, err := os.Lstat(file); return err == nil }

// TestPlaceGoneAtTheStart: what lay beside a hidden place when the plan was
// made, and is gone at the start, stops no session and opens nothing: neither
// what comes back under its name nor what the session reads.
func TestPlaceGoneAtTheStart(t *testing.T) {
	testenv.Need(t, "landlock", "notify")
	ws, out := workspace(t), workspace(t)
	secret, beside := filepath.Join(out, "secret"), filepath.Join(out, "beside")
	for _, name := range []string{secret, beside} {
		if err := os.WriteFile(name, []byte("SECRET\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := NewLandlock("")
	req := request(ws)
	req.Session.ID = fmt.Sprintf("test-%d", time.Now().UnixNano())
	req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: secret, Access: bawn.Hidden, Why: "test"})
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(plan.(*layout.Plan).Landlock.Readable, beside) {
		t.Fatal("control: the place beside is not in the plan")
	}
	if err := os.Remove(beside); err != nil {
		t.Fatal(err)
	}
	text, code, _ := execute(t, p, plan, "cat "+secret+" "+ws+"/x; echo started; exit 3")
	if !strings.Contains(text, "started") || strings.Contains(text, "SECRET") || code != 3 {
		t.Errorf("%d: %q", code, text)
	}
}

// TestLandlockKeepsWhatAgentsObey attacks files that an agent obeys, there and
// not there yet, in a place that the session writes. The control is the same
// request without them.
func TestLandlockKeepsWhatAgentsObey(t *testing.T) {
	testenv.Need(t, "landlock", "notify")
	for _, guarded := range []bool{false, true} {
		ws := workspace(t)
		for _, name := range []string{"settings", "other"} {
			if err := os.WriteFile(filepath.Join(ws, name), []byte("mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := NewLandlock("")
		req := request(ws)
		req.Session.ID = fmt.Sprintf("test-%d", time.Now().UnixNano())
		if guarded {
			req.Guarded = []string{filepath.Join(ws, "settings"), filepath.Join(ws, "absent")}
		}
		plan, err := p.Plan(req)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, p, plan, "echo theirs >settings; mv other settings; echo x >absent; mkdir absent; mv settings gone; echo ran >ran")
		text, _ := os.ReadFile(filepath.Join(ws, "settings"))
		_, err = os.Lstat(filepath.Join(ws, "absent"))
		kept := string(text) == "mine\n" && err != nil
		if _, ran := os.Lstat(filepath.Join(ws, "ran")); kept != guarded || ran != nil {
			t.Errorf("guarded %t: settings are %q, absent: %v, ran: %v", guarded, text, err, ran)
		}
	}
}

func inLandlock(t *testing.T, ws, out, secret, script string) string {
	t.Helper()
	p := NewLandlock("")
	req := request(ws)
	req.Session.ID = fmt.Sprintf("test-%d", time.Now().UnixNano())
	req.Environ = append(req.Environ, "OUT="+out)
	req.Session.Isolation.Env = append(req.Session.Isolation.Env, "OUT")
	req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: secret, Access: bawn.Hidden, Why: "test"})
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := execute(t, p, plan, script)
	return text
}
