package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMain plays the relay where the test binary is started as one. What it
// does is said in the configuration's field Agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "egress" {
		os.Exit(play())
	}
	os.Exit(m.Run())
}

func play() int {
	c := egress.NewChannel(os.NewFile(3, "control"))
	m, err := c.Receive()
	if err != nil || m.Hello == nil || os.Getenv("TEST_RELAY") == "knows no hello" {
		return 2
	}
	if m, err = c.Receive(); err != nil || m.Config == nil {
		return 3
	}
	role := m.Config.Agent
	switch role {
	case "fails":
		c.Send(egress.Message{Failed: "the vault is locked"})
		return 4
	case "another version":
		c.Send(egress.Message{Serving: true})
		return 5
	case "babbles":
		fmt.Fprintln(os.NewFile(3, "control"), "{ no message")
		time.Sleep(time.Minute)
	case "dies":
		return 6
	}
	c.Send(egress.Message{Ready: &egress.Ready{Env: []string{"A=b"}, Files: []egress.File{{Source: "/s", Target: "/t"}}}})
	switch role {
	case "places nothing":
		c.Send(egress.Message{Failed: "the disk is full"})
		return 9
	case "places no more":
		c.Send(egress.Message{Serving: true})
		return 10
	}
	c.Send(egress.Message{Placed: true})
	oob := make([]byte, 256)
	_, n, _, _, err := unix.Recvmsg(4, make([]byte, 1), oob, 0)
	if err != nil || n == 0 {
		return 7
	}
	ms, _ := unix.ParseSocketControlMessage(oob[:n])
	fds, _ := unix.ParseUnixRights(&ms[0])
	c.Send(egress.Message{Serving: true})
	l, err := net.FileListener(os.NewFile(uintptr(fds[0]), "l"))
	if err != nil {
		return 8
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "served")
			conn.Close()
		}
	}()
	c.Send(egress.Message{Ask: &egress.Question{ID: 7, Reason: "why", Action: bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "a.example:443"}}})
	for {
		m, err := c.Receive()
		if errors.Is(err, io.EOF) {
			c.Send(egress.Message{Denial: &egress.Denial{Operation: bawn.Connect, Resource: "last words"}})
			return 0
		}
		if m.Answer != nil {
			c.Send(egress.Message{Denial: &egress.Denial{Operation: bawn.Connect, Resource: fmt.Sprint(m.Answer.ID, m.Answer.Answer.Verdict)}})
		}
	}
}

func begin(t *testing.T, role string) *Relay {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Launch(self, Surroundings{Environ: os.Environ(), Stderr: os.Stderr})
	if err == nil {
		err = r.Configure(egress.Config{Agent: role})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// A relay of a release that had no Hello yet ends at that word. The error names
// both programs and comes at once.
func TestOldRelay(t *testing.T) {
	t.Setenv("TEST_RELAY", "knows no hello")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Launch(self, Surroundings{Environ: os.Environ(), Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, after := range []time.Duration{0, 200 * time.Millisecond} { // while it lives, and when it has ended
		time.Sleep(after)
		if err = r.Configure(egress.Config{Agent: "serves"}); err == nil {
			_, err = r.Ready()
		}
		for _, want := range []string{egress.Self().String(), fmt.Sprintf("%q (which does not say its release)", self), "install all programs"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
			}
		}
	}
}

// The whole of it: what is to be placed, the sockets, a question with its
// answer, and the last words after the end was asked for.
func TestConversation(t *testing.T) {
	r := begin(t, "serves")
	ready, err := r.Ready()
	if err != nil || len(ready.Files) != 1 || ready.Env[0] != "A=b" {
		t.Fatalf("Ready: %+v, %v", ready, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	asked, denied := make(chan egress.Question, 1), make(chan string, 9)
	err = r.Serve([]*os.File{f}, Handlers{
		Ask: func(q egress.Question) { asked <- q }, Withdraw: func(uint64) {}, Denied: func(d egress.Denial) { denied <- d.Resource },
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.Fd() != ^uintptr(0) {
		t.Error("our copy of the socket is still open: without the relay the guest's connections would hang")
	}
	if got := fetch(t, l.Addr().String()); got != "served" {
		t.Errorf("the relay said %q over the socket that it was handed", got)
	}
	if q := testenv.Receive(t, "the question", asked); q.ID != 7 || q.Reason != "why" {
		t.Errorf("asked %+v", q)
	}
	if err := r.Answer(egress.Answer{ID: 7, Answer: bawn.Answer{Verdict: bawn.Allow}}); err != nil {
		t.Fatal(err)
	}
	if got := testenv.Receive(t, "the denial", denied); got != "7 allow" {
		t.Errorf("the relay understood %q", got)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	select {
	case got := <-denied:
		if got != "last words" {
			t.Errorf("the relay's last words are %q", got)
		}
	default:
		t.Error("Close returned before the last words were heard")
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("somebody still listens at the guest's socket")
	}
}

func fetch(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNoRelay(t *testing.T) {
	for role, want := range map[string]string{
		"fails": "the vault is locked", "another version": "not of this version", "dies": "has ended", "babbles": "has ended",
	} {
		r := begin(t, role)
		if _, err := r.Ready(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", role, err, want)
		}
		testenv.Receive(t, "the end of the relay", r.Done())
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// The relay ends with us, however we end: here our side of the channel is gone.
func TestRelayEndsWithBawn(t *testing.T) {
	r := begin(t, "serves")
	if _, err := r.Ready(); err != nil {
		t.Fatal(err)
	}
	r.control.Close()
	r.sockets.Close()
	testenv.Receive(t, "the end of the relay", r.Done())
}

// What a relay that was killed has left is removed, and nothing else is: what
// was there when the relay could not begin is somebody else's.
func TestLeftBehind(t *testing.T) {
	for role, left := range map[string]bool{"serves": false, "fails": true} {
		place := filepath.Join(t.TempDir(), "place")
		if err := os.MkdirAll(filepath.Join(place, "trust"), 0o700); err != nil { // as the relay makes it
			t.Fatal(err)
		}
		if err := egress.MarkPlace(place); err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Launch(self, Surroundings{Environ: os.Environ(), Stderr: os.Stderr})
		if err == nil {
			err = r.Configure(egress.Config{Agent: role, Place: place})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Ready(); (err != nil) != left {
			t.Fatalf("%s: %v", role, err)
		}
		r.process.Process.Kill()
		<-r.Done()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(place); (err == nil) != left {
			t.Errorf("%s: after the end the place is there: %v; want %v", role, err == nil, left)
		}
	}
}

func TestMissing(t *testing.T) {
	_, err := Find() // the test binary has no bawnd beside it
	var missing *MissingError
	if !errors.As(err, &missing) || filepath.Base(missing.Path) != Program {
		t.Errorf("Find: %v; want a *MissingError with the path", err)
	}
}

// Which program is started: the lean one where it is there and can be, and the
// one that holds all else where not.
func TestFindEgress(t *testing.T) {
	dir := t.TempDir()
	beside := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := beside(Program, 0o700)
	if got, err := egressIn(dir); got != whole || err != nil {
		t.Errorf("without the lean one: %q, %v; want %q", got, err, whole)
	}
	lean := beside(Lean, 0o600)
	if got, err := egressIn(dir); got != whole || err != nil {
		t.Errorf("with one that can't be executed: %q, %v; want %q", got, err, whole)
	}
	if err := os.Chmod(lean, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := egressIn(dir); got != lean || err != nil {
		t.Errorf("with it: %q, %v; want %q", got, err, lean)
	}
}

// What could not be placed, or is not said to be, is shown to nobody.
func TestNotPlaced(t *testing.T) {
	for role, want := range map[string]string{"places nothing": "the disk is full", "places no more": "not of this version"} {
		r := begin(t, role)
		if _, err := r.Ready(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.Placed(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", role, err, want)
			}
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Serve([]*os.File{f}, Handlers{}); err == nil || f.Fd() != ^uintptr(0) {
			t.Errorf("%s: Serve: %v; want an error, and the socket closed", role, err)
		}
	}
}

// A relay that is told nothing ends, also without being waited for.
func TestAbandon(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Launch(self, Surroundings{Environ: os.Environ(), Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Abandon(); err != nil {
		t.Error(err)
	}
	testenv.Receive(t, "the end of the relay", r.Done())
}
