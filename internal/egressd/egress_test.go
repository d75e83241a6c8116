package egressd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMain is bawnd where the test binary is started as it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "egress" {
		if other := os.Getenv("TEST_PROTOCOL"); other != "" {
			egress.Protocol, egress.Release = other, "0.0.9"
		}
		os.Exit(Main(os.Args[1:], os.Environ()))
	}
	os.Exit(m.Run())
}

// sockets returns the two ends over which the guest's sockets go.
func sockets(t *testing.T) (ours int, theirs *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "theirs")
	t.Cleanup(func() { unix.Close(fds[0]); theirs.Close() })
	return fds[0], theirs
}

// What bawn sends is taken whole or not at all, and nothing of what is refused
// stays open.
func TestReceive(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	rights := func(n int) []byte {
		fds := make([]int, n)
		for i := range fds {
			fds[i] = int(null.Fd())
		}
		return unix.UnixRights(fds...)
	}
	for name, tt := range map[string]struct {
		count byte
		oob   []byte
		ok    bool
	}{
		"four": {4, rights(4), true}, "most": {maxSockets, rights(maxSockets), true},
		"none": {0, nil, false}, "fewer than said": {5, rights(4), false}, "more than said": {3, rights(4), false},
		"too many": {40, rights(40), false}, "too many, and fewer said": {maxSockets, rights(40), false},
	} {
		ours, theirs := sockets(t)
		before := descriptors(t)
		if err := unix.Sendmsg(ours, []byte{tt.count}, tt.oob, nil, 0); err != nil {
			t.Fatal(err)
		}
		files, err := receive(theirs)
		if (err == nil) != tt.ok || tt.ok && len(files) != int(tt.count) {
			t.Errorf("%s: %d files, %v", name, len(files), err)
		}
		closeAll(files)
		testenv.Until(t, name+": the end of the descriptors", func() bool { return descriptors(t) <= before })
	}
	ours, theirs := sockets(t)
	unix.Shutdown(ours, unix.SHUT_RDWR)
	if files, err := receive(theirs); err == nil {
		t.Errorf("after the end came %d files", len(files))
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Sockets of another number or kind are refused.
func TestServeWrongSockets(t *testing.T) {
	for name, kinds := range map[string]string{"none": "", "five": "tuttt", "datagrams for connections": "uuuu", "connections for datagrams": "tttt", "files": "ffff", "unix": "xuuu"} {
		s, _ := begin(t, config(t, bawn.Egress{}))
		var files []*os.File
		for _, k := range kinds {
			files = append(files, socketOf(t, k))
		}
		if err := s.serve(t.Context(), files); err == nil {
			t.Errorf("%s: served", name)
		}
		for _, f := range files {
			if f.Close() == nil {
				t.Errorf("%s: a socket is still open", name)
			}
		}
	}
}

// socketOf makes a socket for connections (t), datagrams (u), of the wrong
// family (x), or a file (f).
func socketOf(t *testing.T, kind rune) *os.File {
	t.Helper()
	type filer interface {
		File() (*os.File, error)
		Close() error
	}
	var l any
	var err error
	switch kind {
	case 't':
		l, err = net.Listen("tcp", "127.0.0.1:0")
	case 'u':
		l, err = net.ListenPacket("udp", "127.0.0.1:0")
	case 'x':
		l, err = net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	default:
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(filer).File()
	if err != nil {
		t.Fatal(err)
	}
	l.(filer).Close()
	return f
}

// start starts the real relay.
func start(t *testing.T, c egress.Config) (*remote.Relay, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &bytes.Buffer{}
	r, err := remote.Launch(self, remote.Surroundings{Environ: os.Environ(), Stderr: stderr, Apart: true})
	if err == nil {
		err = r.Configure(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, stderr
}

// The process as a whole: it serves over the sockets that it is handed, tells
// and asks, records, and leaves nothing.
func TestProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := config(t, bawn.Egress{HostPorts: []string{"15432:" + port}})
	c.CanAsk, c.Ask = true, 20*time.Second
	r, _ := start(t, c)
	if _, err := r.Ready(); err != nil {
		t.Fatal(err)
	}
	files := []*os.File{socketOf(t, 't'), socketOf(t, 'u'), socketOf(t, 't'), socketOf(t, 't')}
	front, err := net.FileListener(files[3])
	if err != nil {
		t.Fatal(err)
	}
	at := front.Addr().String()
	front.Close()
	denied := make(chan egress.Denial, 9)
	if err := r.Serve(files, remote.Handlers{
		Ask: func(q egress.Question) {
			r.Answer(egress.Answer{ID: q.ID, Answer: bawn.Answer{Verdict: bawn.Deny, Scope: bawn.ForSession, By: "test"}})
		},
		Withdraw: func(uint64) {}, Denied: func(d egress.Denial) { denied <- d },
	}); err != nil {
		t.Fatal(err)
	}
	conn, code := tunnel(t, at, "127.0.0.1:15432")
	io.WriteString(conn, "\x00hi")
	b := make([]byte, 3)
	if _, err := io.ReadFull(conn, b); err != nil || code != http.StatusOK || string(b) != "\x00hi" {
		t.Errorf("%d, %q, %v", code, b, err)
	}
	for _, target := range []string{"127.0.0.1:" + port, "asked.test:443"} {
		if _, code := tunnel(t, at, target); code != http.StatusForbidden {
			t.Errorf("%s: %d; want it to be denied", target, code)
		}
		if d := <-denied; d.Resource != target {
			t.Errorf("told of %+v", d)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if there(t, c.Place) {
		t.Error("the place is still there")
	}
	if _, err := net.Dial("tcp", at); err == nil {
		t.Error("somebody still listens")
	}
	text, err := os.ReadFile(newest(t, c.AuditDir))
	if err != nil || strings.Count(string(text), `"operation":"end"`) != 1 || !strings.Contains(string(text), "the human said no") {
		t.Errorf("recorded %s, %v", text, err)
	}
}

func newest(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no log in %q: %v, %v", dir, list, err)
	}
	return list[len(list)-1]
}

func tunnel(t *testing.T, at, target string) (net.Conn, int) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return c, res.StatusCode
}

// A process that can't serve tells bawn why and ends. It leaves the words to
// bawn: TestTold has what it says where nobody listens.
func TestProcessFails(t *testing.T) {
	c := config(t, bawn.Egress{Hosts: []string{"http://a.test"}})
	r, stderr := start(t, c)
	if _, err := r.Ready(); err == nil || !strings.Contains(err.Error(), "a.test") {
		t.Errorf("Ready: %v; want what is wrong", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if stderr.String() != "" {
		t.Errorf("it said %q, too", stderr)
	}
}

// A relay of another release refuses at once, and the error names both and what
// to do. TestProcess is the control.
func TestProcessOfAnotherRelease(t *testing.T) {
	t.Setenv("TEST_PROTOCOL", "0")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c := config(t, bawn.Egress{})
	r, err := remote.Launch(self, remote.Surroundings{Environ: os.Environ(), Stderr: io.Discard, Apart: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err = r.Configure(c); err == nil {
		_, err = r.Ready()
	}
	for _, want := range []string{
		fmt.Sprintf("%q (%s, protocol %s)", self, egress.Release, egress.Protocol), fmt.Sprintf("%q (0.0.9, protocol 0)", self), "install all programs of one release",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if there(t, c.Place) {
		t.Error("it has made the place")
	}
}

// A bawn that says no Hello is of another release too.
func TestHearsNoHello(t *testing.T) {
	for _, first := range []string{`{"config":{"session":"s"}}`, `{"config":{"of":"another release"}}`, `{"hello":{}}`} {
		ours, theirs := net.Pipe()
		go func() { io.WriteString(ours, first+"\n"); ours.Close() }()
		if c, err := hear(egress.NewChannel(theirs)); err == nil || !strings.Contains(err.Error(), "two releases") {
			t.Errorf("%s: %+v, %v", first, c, err)
		}
	}
}

// Rules that mean nothing are found once the sandbox can be made: nothing is
// served then.
func TestProcessUnruly(t *testing.T) {
	c := config(t, bawn.Egress{})
	c.Rules = []bawn.Rule{{ID: "x", Kind: bawn.Network, Source: bawn.User, Verdict: bawn.Deny}}
	r, _ := start(t, c)
	if _, err := r.Ready(); err != nil {
		t.Fatal(err)
	}
	err := r.Serve([]*os.File{socketOf(t, 't'), socketOf(t, 'u'), socketOf(t, 't'), socketOf(t, 't')}, remote.Handlers{})
	if err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("Serve: %v; want which rule it is", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if there(t, c.Place) {
		t.Error("the place is still there")
	}
}

// Before it is whole nothing of the place may be read; afterwards it holds what
// it will, and who made it can write no more.
func TestFill(t *testing.T) {
	c := config(t, bawn.Egress{Git: []string{"git.test fetch"}})
	box := newMailbox()
	s, err := newSession(t.Context(), c, nil, box.send)
	defer s.close()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"ssh_known_hosts", "trust/ca.pem", "trust/bundle.pem"}
	sizes := func() (list []int64) {
		for _, name := range names {
			info, err := os.Stat(filepath.Join(c.Place, name))
			if err != nil || info.Mode() != 0o444 {
				t.Fatalf("%s: %v, %v", name, info, err)
			}
			list = append(list, info.Size())
		}
		return list
	}
	if got := sizes(); !slices.Equal(got, []int64{0, 0, 0}) {
		t.Errorf("before: %v", got)
	}
	promised := slices.Clone(s.promised)
	if err := s.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sizes(); slices.Min(got) == 0 {
		t.Errorf("after: %v bytes of %v", got, names)
	}
	for _, p := range promised {
		if p.file.Close() == nil {
			t.Errorf("%s is still open for writing", p.file.Name())
		}
	}
}

// Who is no bawn run gets a hint.
func TestMainAlone(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"egress", "x"}} {
		if code := Main(args, nil); code != 2 {
			t.Errorf("%q: %d; want 2", args, code)
		}
	}
}
