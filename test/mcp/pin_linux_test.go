package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

// stranger adds a server of that kind by the command line, as a human would,
// and returns what that said.
func (r *account) stranger(t testing.TB, kind string, more ...string) result {
	t.Helper()
	args := append([]string{"plugin", "add", "--yes", "--name", kind, "--read", r.bin}, more...)
	got := r.bawn(t, append(args, "--", r.bin+"/guest", serverWord, kind)...)
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	return got
}

// differences are what pinning would change.
func (r *account) differences(t testing.TB, name string) map[string]string {
	t.Helper()
	got := r.bawn(t, "plugin", "pin", name, "--dry-run", "--json")
	var said struct {
		Changes []struct{ Tool, Difference string }
	}
	if err := json.Unmarshal([]byte(got.out), &said); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if (got.code == 1) != (len(said.Changes) > 0) {
		t.Errorf("%+v", got)
	}
	out := map[string]string{}
	for _, c := range said.Changes {
		out[c.Tool] += c.Difference
	}
	return out
}

// TestAdd: a manifest is the human's: it is shown in words, and nothing is added
// without somebody who agrees.
func TestAdd(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	got := r.bawn(t, "plugin", "add", "--name", "calc", "--write", ".", "--host", "api.example.com", "--allow", "get_*", "--", "calc", "--stdio")
	if got.code != 126 || !strings.Contains(got.err, "may read and CHANGE the whole project") || !strings.Contains(got.err, "nobody is there to be asked") {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(r.home, ".config/bawn/plugins/calc.toml")
	if _, err := os.Stat(file); err == nil {
		t.Error("it was added")
	}
	r.stranger(t, "calc")
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got := r.bawn(t, "plugin", "add", "--yes", "--name", "calc", "--", "other"); got.code != 2 || !strings.Contains(got.err, "already") {
		t.Errorf("%+v", got)
	}
	if got := r.bawn(t, "plugin", "add", "--yes", "--name", "ca1c", "--", "other"); got.code != 2 || !strings.Contains(got.err, "looks like") {
		t.Errorf("%+v", got)
	}
	if got := r.bawn(t, "plugin", "add", "--yes", "--replace", "--name", "calc", "--host", "evil.example.com", "--", "calc"); got.code != 0 || !strings.Contains(got.err, "+ may connect to evil.example.com") || !strings.Contains(got.err, "- has no network") {
		t.Errorf("%+v", got)
	}
	if got := r.bawn(t, "plugin", "rm", "calc"); got.code != 0 || r.bawn(t, "plugin", "show", "calc").code != 2 {
		t.Errorf("%+v", got)
	}
}

// TestAgreeing: an answer that comes out of a pipe is nobody's, even where there
// is a terminal. The control types it there.
func TestAgreeing(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for _, typed := range []bool{false, true} {
		master, tty, err := pty.Open()
		check(t, err)
		cmd := r.command(t.Context(), filepath.Join(r.bin, "bawn"), "plugin", "add", "--name", "calc", "--", "calc")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("yes\n"), tty, tty
		if typed {
			cmd.Stdin = tty
			_, err = master.WriteString("yes\n")
			check(t, err)
		}
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 1
		err = cmd.Run()
		if added := r.bawn(t, "plugin", "show", "calc").code == 0; added != typed || (err == nil) != typed {
			t.Errorf("typed %t: added %t, %v", typed, added, err)
		}
		check(t, tty.Close())
		check(t, master.Close())
	}
}

// TestNoGuestAdds: what a guest may start is not its own to say. The control is
// the same command outside.
func TestNoGuestAdds(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.put(t, ".config/bawn/config.toml", "")
	add := []string{r.bin + "/bawn", "plugin", "add", "--yes", "--name", "calc", "--", "calc"}
	got := r.run(t, append([]string{r.bin + "/bawn", "run", "-q", "--"}, add...)...)
	if file := filepath.Join(r.home, ".config/bawn/plugins"); got.code != 126 || !strings.Contains(got.err, "not a guest's to see or change") {
		t.Errorf("%+v", got)
	} else if _, err := os.Stat(file); err == nil {
		t.Error("it was added")
	}
	// Without the variable that tells it, it finds nothing that it could write.
	r.run(t, append([]string{r.bin + "/bawn", "run", "-q", "--", "env", "-u", "BAWN_SESSION"}, add...)...)
	if _, err := os.Stat(filepath.Join(r.home, ".config/bawn/plugins/calc.toml")); err == nil {
		t.Error("it was added behind the back of bawn")
	}
	if got := r.run(t, add...); got.code != 0 {
		t.Errorf("control: %+v", got)
	}
}

// TestPinRug: a server that changes what its tools say after they were pinned is
// found out. The control is one that does not.
func TestPinRug(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for kind, want := range map[string]map[string]string{"honest": {}, "rug": {"work": "changed"}} {
		r.stranger(t, kind)
		if got := r.bawn(t, "plugin", "pin", kind, "--yes"); got.code != 0 || !strings.Contains(got.out, "does the work") {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff(want, r.differences(t, kind)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	got := r.bawn(t, "plugin", "pin", "rug", "--yes")
	if got.code != 0 || !strings.Contains(got.out, "read ~/.ssh/id_rsa") {
		t.Errorf("the human is not shown it: %+v", got)
	}
	if diff := cmp.Diff(map[string]string{}, r.differences(t, "rug")); diff != "" {
		t.Errorf("agreed to: %s", diff)
	}
}

// TestPinHostile: what is not fit to be shown is not pinned, what never ends is
// left, and nothing of it acts on a terminal.
func TestPinHostile(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for kind, want := range map[string]map[string]string{
		"names": {"work": "shadowingshadowing", "w0rk": "confusable", "work\x1b[2J": "unfit", "wo\u202erk": "unfit", "w\u043erk": "unfit", "other__work": "unfit", "work ": "unfit"},
		"texts": {"work": "new", "clear": "unfit", "hide": "unfit", "turn": "unfit"},
		"book":  {"work": "new", "book": "unfit"},
	} {
		r.stranger(t, kind)
		if diff := cmp.Diff(want, r.differences(t, kind)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		got := r.bawn(t, "plugin", "pin", kind, "--yes")
		if strings.ContainsAny(got.out+got.err, "\x1b\u202e\U000e0069") || len(got.out) > 64<<10 {
			t.Errorf("%s: it acts on the terminal, or fills it: %q", kind, got.out)
		}
		show := r.bawn(t, "plugin", "show", kind)
		if pinned := strings.Contains(show.out, "pinned: work"); pinned != (kind != "names") || strings.Count(show.out, "pinned:") > 1 {
			t.Errorf("%s: %s", kind, show.out)
		}
	}
	r.stranger(t, "endless")
	if got := r.bawn(t, "plugin", "pin", "endless", "--yes"); got.code != 125 || !strings.Contains(got.err, "more than 64 pages") {
		t.Errorf("%+v", got)
	}
}
