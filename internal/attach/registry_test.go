package attach

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// The test program is also the host that is killed, and the guest.
const roleVariable = "BAWN_ATTACH_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "host":
		os.Exit(hostRole(os.Args[1], os.Args[2]))
	}
}

// hostRole enters a session, says so, and waits to be killed or for the end of
// its input.
func hostRole(dir, id string) int {
	e := testEntry(id)
	e.PID = os.Getpid()
	if _, err := Register(dir, e); err != nil {
		return 1
	}
	os.Stdout.WriteString("here\n")
	os.Stdin.Read(make([]byte, 1))
	return 0
}

// startHost starts hostRole as another process.
func startHost(t *testing.T, dir, id string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], dir, id)
	c.Env = append(os.Environ(), roleVariable+"=host")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Process.Kill(); c.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "here\n" {
		t.Fatalf("the host said %q", line)
	}
	return c
}

func testEntry(id string) Entry {
	return Entry{
		ID: id, Agent: "sh", Argv: []string{"sh", "-c", "true"}, Dir: "/srv/project", Workspace: "/srv/project", Provider: "native",
		Mode: "normal", Network: "none", Started: time.Now(), PID: os.Getpid(), Terminal: true,
	}
}

func register(t *testing.T, dir string, e Entry) *Place {
	t.Helper()
	p, err := Register(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	return p
}

func list(t *testing.T, dir string) []Entry {
	t.Helper()
	entries, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// onlyState wants exactly one session, in that state.
func onlyState(t *testing.T, dir string, want State) Entry {
	t.Helper()
	entries := list(t, dir)
	if len(entries) != 1 || entries[0].State != want {
		t.Fatalf("got %+v, want one session that is %s", entries, want)
	}
	return entries[0]
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, sessionsName, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join(dir, sessionsName, "*"))
	return append(names, more...)
}

func TestRegister(t *testing.T) {
	dir := t.TempDir()
	if got := list(t, dir); len(got) != 0 {
		t.Fatalf("an empty registry lists %+v", got)
	}
	e := testEntry("abc123")
	p := register(t, dir, e)
	got := onlyState(t, dir, Running)
	e.State = Running
	if d := cmp.Diff(e, got, cmpopts.EquateApproxTime(0)); d != "" {
		t.Errorf("the entry differs (-want +got):\n%s", d)
	}
	info, err := os.Stat(p.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v; want 0700", info.Mode(), err)
	}
	if _, err := Register(dir, e); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same ID again: %v", err)
	}
	onlyState(t, dir, Running) // is not hurt by that
	p.Remove()
	if l := left(t, dir); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

func TestRegisterRefusesNames(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"", ".", "..", "a/b", "../x", "a b", strings.Repeat("a", 65), "a\x00"} {
		if _, err := Register(dir, testEntry(id)); err == nil {
			t.Errorf("%q was entered", id)
		}
		if _, err := Dial(dir, id, true); err == nil {
			t.Errorf("%q was dialled", id)
		}
	}
}

// TestKilledHost: what the kernel released is dead, is told once, and goes.
func TestKilledHost(t *testing.T) {
	dir := t.TempDir()
	c := startHost(t, dir, "victim")
	onlyState(t, dir, Running)
	Sweep(dir, time.Now().Add(100*Kept))
	onlyState(t, dir, Running) // who lives is never swept
	c.Process.Kill()
	c.Wait()
	onlyState(t, dir, Dead)
	Sweep(dir, time.Now())
	if l := left(t, dir); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

func TestDeadHostedKeepsItsOutput(t *testing.T) {
	dir := t.TempDir()
	e := testEntry("hosted")
	e.Hosted = true
	p := register(t, dir, e)
	if err := os.WriteFile(p.path(logName), []byte("last words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.release() // as the kernel does
	if e := onlyState(t, dir, Dead); !e.Ended.IsZero() {
		t.Errorf("told already: %+v", e)
	}
	now := time.Now()
	Sweep(dir, now)
	if e := onlyState(t, dir, Dead); e.Ended.IsZero() {
		t.Error("would be told twice")
	}
	Sweep(dir, now.Add(Kept-time.Minute))
	onlyState(t, dir, Dead)
	Sweep(dir, now.Add(Kept+time.Minute))
	if l := left(t, dir); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

// TestSweepLeavesWhatBegins: a directory without an entry is a session that is
// being entered, unless it has been for long.
func TestSweepLeavesWhatBegins(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, sessionsName, "young"), 0o700); err != nil {
		t.Fatal(err)
	}
	Sweep(dir, time.Now())
	if got := list(t, dir); len(got) != 0 || len(left(t, dir)) != 1 {
		t.Errorf("listed %v, left %v; want none listed and one left", got, left(t, dir))
	}
	Sweep(dir, time.Now().Add(2*abandoned))
	if l := left(t, dir); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

// TestSweepKeepsForeignFiles: only names of the registry are removed.
func TestSweepKeepsForeignFiles(t *testing.T) {
	dir := t.TempDir()
	p := register(t, dir, testEntry("x1"))
	foreign := p.path("mine.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.release()
	Sweep(dir, time.Now())
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// TestListersDontLockEachOther: a dead session is dead for everybody who looks
// at the same time.
func TestListersDontLockEachOther(t *testing.T) {
	dir := t.TempDir()
	p := register(t, dir, testEntry("x1"))
	p.release()
	fd, err := openFile(p.dir, syscall.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := flock(fd, syscall.LOCK_SH); err != nil { // somebody who is looking
		t.Fatal(err)
	}
	onlyState(t, dir, Dead)
}

func TestEnd(t *testing.T) {
	dir := t.TempDir()
	e := testEntry("x1")
	e.Hosted, e.Viewers = true, 3
	p := register(t, dir, e)
	if err := p.End(7, time.Now()); err != nil {
		t.Fatal(err)
	}
	got := onlyState(t, dir, Ended)
	if got.Exit == nil || *got.Exit != 7 || got.Viewers != 0 || got.Ended.IsZero() {
		t.Errorf("got %+v", got)
	}
}

func TestFind(t *testing.T) {
	entries := []Entry{{ID: "abc1"}, {ID: "abc2"}, {ID: "xyz"}, {ID: "xyz9"}}
	for id, want := range map[string]string{"abc1": "abc1", "xyz": "xyz", "xyz9": "xyz9", "abc": "", "q": "", "": ""} {
		got, err := Find(entries, id)
		var none *NotFoundError
		if got.ID != want || (want == "") != errors.As(err, &none) {
			t.Errorf("Find(%q) = %q, %v; want %q", id, got.ID, err, want)
		}
	}
	if got, err := Find(entries[:1], ""); err != nil || got.ID != "abc1" {
		t.Errorf("the only one: %v, %v", got.ID, err)
	}
}

// TestSignalReachesNobodyElse: a dead session's pid is somebody else's by now.
func TestSignalReachesNobodyElse(t *testing.T) {
	dir := t.TempDir()
	bystander := exec.Command("sleep", "30")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { bystander.Process.Kill(); bystander.Wait() }()
	e := testEntry("x1")
	e.PID = bystander.Process.Pid
	p := register(t, dir, e)
	p.release()
	for _, name := range []string{"TERM", "KILL", "INT"} {
		if err := Signal(dir, onlyState(t, dir, Dead), name); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: %v; want %v", name, err, ErrNotRunning)
		}
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a bystander was hit: %v", err)
	}
	for _, pid := range []int{0, 1, -1} { // an entry that Bawn did not write
		e.PID = pid
		if err := Signal(dir, e, "TERM"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("pid %d: %v", pid, err)
		}
	}
}

// TestSignalReachesTheHost is the control, and what --signal KILL falls back to.
func TestSignalReachesTheHost(t *testing.T) {
	dir := t.TempDir()
	c := startHost(t, dir, "x1")
	if err := Signal(dir, onlyState(t, dir, Running), "TERM"); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGTERM {
		t.Errorf("the host ended with %v", c.ProcessState)
	}
	if err := WaitEnd(t.Context(), dir, "x1"); err != nil {
		t.Error(err)
	}
}

// TestEntryIsJSON holds the short way of writing to encoding/json's.
func TestEntryIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.Rune())
		e := Entry{
			ID: text.Draw(t, "id"), Parent: text.Draw(t, "parent"), Agent: text.Draw(t, "agent"), Argv: rapid.SliceOfN(text, 1, 3).Draw(t, "argv"),
			Dir: text.Draw(t, "dir"), Workspace: text.Draw(t, "workspace"), Provider: text.Draw(t, "provider"), Mode: "normal", Network: "none",
			Started: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), 5).UTC(), PID: rapid.Int().Draw(t, "pid"), Hosted: rapid.Bool().Draw(t, "hosted"),
			Terminal: rapid.Bool().Draw(t, "terminal"), Viewers: rapid.Int().Draw(t, "viewers"),
		}
		if rapid.Bool().Draw(t, "ended") {
			code := rapid.Int().Draw(t, "code")
			e.Ended, e.Exit, e.Zones, e.InPart, e.Copy = e.Started.Add(time.Second), &code, []string{"r", "e"}, []string{text.Draw(t, "part")}, text.Draw(t, "copy")
		}
		var got Entry
		if err := json.Unmarshal(appendEntry(nil, &e), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// BenchmarkRegister is what the registry costs a session that is not hosted.
func BenchmarkRegister(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		p, err := Register(dir, testEntry("k3xrabcdefghijklmnopqrstuv"))
		if err != nil {
			b.Fatal(err)
		}
		p.Remove()
	}
}
