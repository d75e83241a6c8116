package approvals_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A program changes its own words while its human is asked about them.
const racing = `import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
word = ctypes.create_string_buffer(b"-u" + b"\0" * 8)
argv = (ctypes.c_char_p * 3)(b"id", ctypes.cast(word, ctypes.c_char_p), None)
def change():
    while not os.path.exists("asked"): time.sleep(0.01)
    word.value = b"-G"
    open("changed", "w").close()
if sys.argv[1] == "race": threading.Thread(target=change, daemon=True).start()
libc.execv(b"/usr/bin/id", argv)
print("errno", ctypes.get_errno())
`

// TestProgramsAreAskedAbout: a rule that asks about a command holds a program until its
// human has answered, whatever starts it, while all else goes on. A yes is for the words
// that were shown.
func TestProgramsAreAskedAbout(t *testing.T) {
	r := newAccount(t)
	line := []string{"--", "/bin/sh", "-c", "(env id; echo ended) & echo meanwhile >meanwhile; wait"}
	if got := testenv.Receive(t, "the control", r.away("deny", line...)); !strings.Contains(got, "uid=") {
		t.Fatalf("without a rule: %s", got)
	}
	r.Rule(t, "ask", "command", "id *")
	if got := testenv.Receive(t, "a refusal", r.away("deny", line...)); strings.Contains(got, "uid=") || !strings.Contains(got, "ended") {
		t.Errorf("where nobody can be asked: %s", got)
	}
	waits := r.away("wait", line...)
	q := r.pending("id")
	if !r.has("meanwhile") {
		t.Error("the rest of the session waits as well")
	}
	r.answer("bawn", "deny", q.ID, "--why", "not today")
	if got := testenv.Receive(t, "a no", waits); strings.Contains(got, "uid=") || !strings.Contains(got, "not today") || !strings.Contains(got, "ended") {
		t.Errorf("after a no: %s", got)
	}
	waits = r.away("wait", line...)
	r.answer("bawn", "approve", r.pending("id").ID)
	if got := testenv.Receive(t, "a yes", waits); !strings.Contains(got, "uid=") {
		t.Errorf("after a yes: %s", got)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		return
	}
	r.Put(t, filepath.Join(r.Work, "race.py"), racing, 0o644)
	for how, want := range map[string]string{"plain": fmt.Sprintf("%d\n", os.Getuid()), "race": "errno 13"} {
		waits = r.away("wait", "--", "python3", "race.py", how)
		q := r.pending("id -u")
		if how == "race" {
			r.Put(t, filepath.Join(r.Work, "asked"), "", 0o644)
			testenv.Until(t, "other words", func() bool { return r.has("changed") })
		}
		r.answer("bawn", "approve", q.ID)
		if got := testenv.Receive(t, "a yes", waits); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", how, got, want)
		}
	}
}

// has reports whether the workspace has a file.
func (r *account) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.Work, name))
	return err == nil
}

// TestLinesNamePrograms: in a split session a yes to a line is for the programs that it
// names, once. What a script starts is asked about by itself.
func TestLinesNamePrograms(t *testing.T) {
	r := newAccount(t)
	r.Put(t, filepath.Join(r.Work, "script.sh"), "id -u\n", 0o644)
	line := func(text string) <-chan string { return r.away("wait", "--split", "--", "/bin/sh", "-c", text) }
	uid := fmt.Sprintf("%d\n", os.Getuid())
	if got := testenv.Receive(t, "the control", line("sh script.sh")); !strings.Contains(got, uid) {
		t.Fatalf("without a rule: %s", got)
	}
	r.Rule(t, "ask", "command", "id *")
	waits := line("id -u; sh script.sh; echo ended")
	r.answer("bawn", "approve", r.pending("id -u\nsh script.sh\necho ended").ID)
	r.answer("bawn", "deny", r.pending("id -u").ID, "--why", "not in a script")
	if got := testenv.Receive(t, "a no to the script", waits); strings.Count(got, uid) != 1 || !strings.Contains(got, "ended") {
		t.Errorf("after a yes to the line and a no to the script: %s; want one answer of id", got)
	}
	waits = line("sh script.sh")
	r.answer("bawn", "approve", r.pending("id -u").ID)
	if got := testenv.Receive(t, "a yes to the script", waits); !strings.Contains(got, uid) {
		t.Errorf("after a yes to the script: %s", got)
	}
}
