package native

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// home is a session whose HOME is a directory of the test, with a workspace
// beside it.
func home(t *testing.T, files ...string) (dir string, req sandbox.Request) {
	t.Helper()
	dir = workspace(t)
	for _, f := range append(files, "work/.keep") {
		if link, to, ok := strings.Cut(f, " -> "); ok {
			succeed(t, os.Symlink(to, filepath.Join(dir, link)))
			continue
		}
		replace(t, filepath.Join(dir, f), "old")
	}
	req = request(filepath.Join(dir, "work"))
	req.Environ = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	return dir, req
}

// replace writes a file as most programs do: a new one, renamed over the old.
func replace(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(filepath.Dir(file), ".fresh")
	if err := os.WriteFile(fresh, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, file); err != nil {
		t.Fatal(err)
	}
}

// keptGuest is a running session, unkept without its refresher.
func keptGuest(t *testing.T, req sandbox.Request, unkept bool) *guest {
	t.Helper()
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	if unkept {
		plan.(*layout.Plan).Kept = nil
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g.(*guest)
}

// reader starts a guest that reads a file all the time. What it has read since
// the last call is returned by the function.
func reader(t *testing.T, g *guest, file string) func() string {
	t.Helper()
	r, w, _ := os.Pipe()
	null, _ := os.Open(os.DevNull)
	_, err := g.Exec(sandbox.Command{Argv: []string{"bash", "-c", `echo ready; while :; do read -r x < "$0" && echo "$x"; done 2>/dev/null`, file}, Stdio: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	buf := make([]byte, 1<<20)
	if n, _ := r.Read(buf); !strings.HasPrefix(string(buf[:n]), "ready") {
		t.Fatalf("got %q", buf[:n])
	}
	return func() string { return testenv.Drain(t, r) }
}

// whenCovered waits until a mount lies on the guest's file, and returns how
// long that took, or false after a while.
func whenCovered(g *guest, file string, patience time.Duration) (time.Duration, bool) {
	root := int(g.init.Ready()[0].Fd())
	for start := time.Now(); time.Since(start) < patience; time.Sleep(20 * time.Microsecond) {
		var st unix.Statx_t
		if unix.Statx(root, file[1:], unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &st) == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
			return time.Since(start), true
		}
	}
	return patience, false
}

// TestReplacedFileStaysHidden renames new files over hidden ones, as a login on
// the host does, while the guest reads all the time. The control is the same
// session without its refresher.
func TestReplacedFileStaysHidden(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	dir, req := home(t, ".npmrc")
	file := filepath.Join(dir, ".npmrc")
	control := keptGuest(t, req, true)
	replace(t, file, "new")
	if got := cat(t, control, file); got != "new\n" {
		t.Fatalf("the control read %q", got)
	}
	g := keptGuest(t, req, false)
	read := reader(t, g, file)
	var took []time.Duration
	early, late := 0, 0
	for i := range 50 {
		text := fmt.Sprint("new ", i)
		replace(t, file, text)
		d, ok := whenCovered(g, file, testenv.Patience(t, 20*time.Second))
		if !ok {
			t.Fatal("not covered again: ", g.Hits())
		}
		took = append(took, d)
		time.Sleep(2 * time.Millisecond) // a read that began before ends
		if strings.Contains(read(), text+"\n") {
			early++
		}
		time.Sleep(2 * time.Millisecond)
		// A guest that was held up has one line to write; one that still sees
		// the file, hundreds.
		late += max(0, strings.Count(read(), "\n")-1)
	}
	slices.Sort(took)
	t.Logf("covered after %v in the middle and %v at worst; %d of 50 were read before that", took[25], took[49], early)
	if late > 0 {
		t.Errorf("%d times read later; covered after %v", late, took)
	}
	select {
	case <-g.Done():
		t.Error("the session ended")
	default:
	}
}

// TestChangedPlacesStayHidden changes hidden places on the host in other ways.
func TestChangedPlacesStayHidden(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	cases := map[string]struct {
		before []string
		read   string // what a guest must not read
		change func(t *testing.T, dir string)
	}{
		"an absent file":         {nil, ".git-credentials", func(t *testing.T, dir string) { replace(t, dir+"/.git-credentials", "new") }},
		"in an absent directory": {nil, ".cargo/credentials.toml", func(t *testing.T, dir string) { replace(t, dir+"/.cargo/credentials.toml", "new") }},
		"an absent directory":    {nil, ".config/gh/hosts.yml", func(t *testing.T, dir string) { replace(t, dir+"/.config/gh/hosts.yml", "new") }},
		"removed and made again": {[]string{".npmrc"}, ".npmrc", func(t *testing.T, dir string) {
			succeed(t, os.Remove(dir+"/.npmrc"))
			succeed(t, os.WriteFile(dir+"/.npmrc", []byte("new\n"), 0o600))
		}},
		"its directory replaced": {[]string{".config/gh/hosts.yml"}, ".config/gh/hosts.yml", func(t *testing.T, dir string) {
			succeed(t, os.Rename(dir+"/.config", dir+"/.config.old"))
			replace(t, dir+"/.fresh.d/gh/hosts.yml", "new")
			succeed(t, os.Rename(dir+"/.fresh.d", dir+"/.config"))
		}},
		"a hidden directory replaced": {[]string{".ssh/id"}, ".ssh/id", func(t *testing.T, dir string) {
			succeed(t, os.Rename(dir+"/.ssh", dir+"/.ssh.old"))
			replace(t, dir+"/.fresh.d/id", "new")
			succeed(t, os.Rename(dir+"/.fresh.d", dir+"/.ssh"))
		}},
		"a file becomes a link": {[]string{".npmrc", "dot/npmrc"}, "dot/npmrc", func(t *testing.T, dir string) {
			succeed(t, os.WriteFile(dir+"/dot/npmrc", []byte("new\n"), 0o600))
			succeed(t, os.Symlink("dot/npmrc", dir+"/.link"))
			succeed(t, os.Rename(dir+"/.link", dir+"/.npmrc"))
		}},
		"a link becomes a file": {[]string{"dot/npmrc", ".npmrc -> dot/npmrc"}, ".npmrc", func(t *testing.T, dir string) { replace(t, dir+"/.npmrc", "new") }},
		"what a link leads to":  {[]string{"dot/npmrc", ".npmrc -> dot/npmrc"}, "dot/npmrc", func(t *testing.T, dir string) { replace(t, dir+"/dot/npmrc", "new") }},
		"a file becomes a directory": {[]string{".docker/config.json"}, ".docker/config.json/x", func(t *testing.T, dir string) {
			succeed(t, os.Remove(dir+"/.docker/config.json"))
			replace(t, dir+"/.docker/config.json/x", "new")
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, unkept := range []bool{true, false} {
				if got := readAfter(t, c.before, c.read, c.change, unkept); strings.Contains(got, "new") != unkept {
					t.Errorf("without the refresher %v: the guest reads %q", unkept, got)
				}
			}
		})
	}
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// readAfter is what a guest reads some time after a change on the host.
func readAfter(t *testing.T, before []string, file string, change func(*testing.T, string), unkept bool) string {
	t.Helper()
	dir, req := home(t, before...)
	g := keptGuest(t, req, unkept)
	change(t, dir)
	return soon(t, g, filepath.Join(dir, file), unkept)
}

// soon is what a guest can read of a changed file once the refresher, if there is
// one, has had its time: more of it where the machine is busy. What is hidden has
// to stay so for a while.
func soon(t *testing.T, g *guest, file string, unkept bool) (got string) {
	t.Helper()
	var since time.Time // as it is wanted
	for deadline := time.Now().Add(testenv.Patience(t, 20*time.Second)); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		got = cat(t, g, file)
		switch now := time.Now(); {
		case strings.Contains(got, "new") != unkept:
			since = time.Time{}
		case since.IsZero():
			since = now
		}
		if !since.IsZero() && (unkept || time.Since(since) > 100*time.Millisecond) {
			return got
		}
	}
	return got
}

// cat is what a guest can read of a file.
func cat(t *testing.T, g *guest, file string) string {
	t.Helper()
	r, w, _ := os.Pipe()
	null, _ := os.Open(os.DevNull)
	proc, err := g.Exec(sandbox.Command{Argv: []string{"cat", file}, Stdio: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err, g.Hits())
	}
	for range proc.Changes() {
	}
	text, _ := io.ReadAll(r)
	return string(text)
}

// TestShownFileIsHiddenWhenReplaced replaces a file which the session shows in
// another form.
func TestShownFileIsHiddenWhenReplaced(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	for _, unkept := range []bool{true, false} {
		dir, req := home(t, "token", "masked")
		replace(t, filepath.Join(dir, "masked"), "masked")
		file := filepath.Join(dir, "token")
		req.Files = []sandbox.File{{Source: filepath.Join(dir, "masked"), Target: file}}
		g := keptGuest(t, req, unkept)
		if got := cat(t, g, file); got != "masked\n" {
			t.Fatalf("shown: %q", got)
		}
		replace(t, file, "new")
		if got := soon(t, g, file, unkept); strings.Contains(got, "new") != unkept {
			t.Errorf("without the refresher %v: the guest reads %q", unkept, got)
		}
	}
}

// TestPlaceThatCannotBeCoveredEndsTheSession takes the refresher's way into the
// guest away.
func TestPlaceThatCannotBeCoveredEndsTheSession(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	dir, req := home(t, ".npmrc")
	g := keptGuest(t, req, false)
	time.Sleep(20 * time.Millisecond)
	succeed(t, g.LoseGuest())
	replace(t, filepath.Join(dir, ".npmrc"), "new")
	testenv.Receive(t, "the session's end", g.Done())
	hits := g.Hits()
	if len(hits) != 1 || hits[0].Rule != supervise.RuleHidden || !hits[0].Killed || !strings.Contains(hits[0].Reason, ".npmrc") {
		t.Errorf("got %+v", hits)
	}
}

// TestReplacedUsersStayTheGuests: a list of users that a program of the host replaces
// is covered with the guest's again. The control is a session without its refresher.
func TestReplacedUsersStayTheGuests(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	dir, req := home(t, "passwd", "own")
	file := filepath.Join(dir, "passwd")
	replace(t, filepath.Join(dir, "own"), "the guest's")
	req.Users = []sandbox.File{{Source: filepath.Join(dir, "own"), Target: file}}
	control, g := keptGuest(t, req, true), keptGuest(t, req, false)
	if got := cat(t, g, file); got != "the guest's\n" {
		t.Fatalf("the guest reads %q", got)
	}
	for range 3 {
		replace(t, file, "new")
		if _, ok := whenCovered(g, file, testenv.Patience(t, 20*time.Second)); !ok {
			t.Fatal("not covered again: ", g.Hits())
		}
		if got := cat(t, g, file); got != "the guest's\n" {
			t.Errorf("the guest reads %q after the host's is replaced", got)
		}
	}
	if got := cat(t, control, file); got != "new\n" {
		t.Errorf("the control reads %q", got)
	}
}
