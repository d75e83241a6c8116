package egressd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/trust"
)

// The resolver answers for what may be reached or asked about, and for nothing
// else.
func TestPermit(t *testing.T) {
	e := bawn.Egress{Hosts: []string{"open.test", "db.test:5432"}, HTTP: []string{"api.test GET /"}, Git: []string{"git.test fetch"}}
	c := config(t, e)
	c.Rules = []bawn.Rule{{ID: "no", Kind: bawn.Network, Pattern: "denied.test", Verdict: bawn.Deny, Source: bawn.User, Reason: "never"}}
	s, _ := begin(t, c)
	for name, want := range map[string]bool{
		"open.test": true, "db.test": true, "api.test": true, "git.test": true, "unknown.test": true, // which asks
		"denied.test": false, "localhost": false, "a.localhost": false, HostName: false, "xn--p1ai.test": false, "127.0.0.1": false, "10.0.0.1": false,
	} {
		if ok, reason := s.permit(name); ok != want || !ok && reason == "" {
			t.Errorf("permit(%q) = %v, %q; want %v and why", name, ok, reason, want)
		}
	}
	c = config(t, bawn.Egress{HostPorts: []string{"5432"}})
	s, _ = begin(t, c)
	if ok, _ := s.permit(HostName); !ok {
		t.Error("the host's name has no address although a port is opened")
	}
}

// The host's loopback is reached by its opened ports only, whatever else says
// so: no entry, however wide, and no name that leads there.
func TestLoopback(t *testing.T) {
	open, shut := service(t), service(t)
	s, _ := begin(t, config(t, bawn.Egress{HostPorts: []string{fmt.Sprintf("15432:%d", open)}}))
	for host, port := range map[string]uint16{"127.0.0.1": 15432, "127.9.9.9": 15432, "::1": 15432, HostName: 15432} {
		c, to, err := s.dial(t.Context(), host, port)
		if err != nil || to.Port() != open {
			t.Errorf("dial %s:%d went to %v, %v; want port %d", host, port, to, err, open)
			continue
		}
		c.Close()
	}
	if c, to, err := s.dial(t.Context(), "127.0.0.1", shut); err == nil {
		c.Close()
		t.Errorf("a port that is not opened was dialled: %v", to)
	}
	if c, to, err := s.dial(t.Context(), HostName, shut); err == nil {
		c.Close()
		t.Errorf("a port that is not opened was dialled: %v", to)
	}
	for _, host := range []string{"127.0.0.1", "::1", HostName} {
		at := net.JoinHostPort(host, fmt.Sprint(shut))
		if d := decide(t, s, at); d.Verdict != bawn.Deny || d.Rule != "isolation:host_ports" {
			t.Errorf("%s: %+v; want to be denied", at, d)
		}
		if d := decide(t, s, net.JoinHostPort(host, "15432")); d.Verdict != bawn.Allow || d.Rule != "isolation:host_ports:15432" {
			t.Errorf("%s: %+v", host, d)
		}
	}
	for _, name := range []string{"localhost", "a.localhost"} {
		if d := decide(t, s, fmt.Sprintf("%s:%d", name, shut)); d.Verdict != bawn.Deny {
			t.Errorf("%s: %+v; want to be denied", name, d)
		}
	}
	// However an address is written, the dialer leads no name there.
	for _, a := range []string{"127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1"} {
		s.dialer.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(a)}, nil }
		if c, to, err := s.dial(t.Context(), "rebound.test", shut); err == nil {
			c.Close()
			t.Errorf("a name that is at %s was dialled: %v", a, to)
		}
	}
}

// A session that can't be is an error, touches nothing that was there before
// and leaves nothing.
func TestBadConfig(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *egress.Config){
		"host":          func(_ *testing.T, c *egress.Config) { c.Egress.Hosts = []string{"http://a.test"} },
		"http":          func(_ *testing.T, c *egress.Config) { c.Egress.HTTP = []string{"a.test"} },
		"git":           func(_ *testing.T, c *egress.Config) { c.Egress.Git = []string{"a.test destroy"} },
		"host port":     func(_ *testing.T, c *egress.Config) { c.Egress.HostPorts = []string{"0"} },
		"proxy":         func(_ *testing.T, c *egress.Config) { c.Egress.Proxy = "ftp://proxy.test" },
		"audit":         func(t *testing.T, c *egress.Config) { c.AuditDir = file(t) },
		"secret":        func(_ *testing.T, c *egress.Config) { c.Egress.Secrets = []string{"none-such"} },
		"no place":      func(_ *testing.T, c *egress.Config) { c.Place = "" },
		"relative":      func(_ *testing.T, c *egress.Config) { c.Place = "run/s" },
		"place above":   func(_ *testing.T, c *egress.Config) { c.Place += "/../x" },
		"place is file": func(t *testing.T, c *egress.Config) { c.Place = file(t) },
		"below a file":  func(t *testing.T, c *egress.Config) { c.Place = filepath.Join(file(t), "s") },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, bawn.Egress{})
			change(t, &c)
			s, err := whole(t.Context(), c, nil, newMailbox().send)
			if err == nil {
				t.Error("the session began")
			}
			if err := s.close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if s.placed {
				t.Error("placed")
			}
		})
	}
	begin(t, config(t, bawn.Egress{})) // control
}

// file is one that holds something.
func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
			t.Errorf("the file is %q, %v", b, err)
		}
	})
	return path
}

// Nobody else can have a hand in the place: it is made anew, in a directory of
// the user's own. What is there already stays as it is, also at the end.
func TestPlaceTraps(t *testing.T) {
	link := func(t *testing.T, to, at string) {
		t.Helper()
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, trap := range map[string]func(t *testing.T, dir, place string){
		"is there":  func(t *testing.T, _, place string) { mkdir(t, place, 0o700) },
		"is a link": func(t *testing.T, dir, place string) { mkdir(t, filepath.Dir(place), 0o700); link(t, dir, place) },
		"dangles": func(t *testing.T, dir, place string) {
			mkdir(t, filepath.Dir(place), 0o700)
			link(t, dir+"/gone", place)
		},
		"below a link": func(t *testing.T, dir, place string) {
			mkdir(t, dir+"/real", 0o700)
			link(t, dir+"/real", filepath.Dir(place))
		},
		"of a group": func(t *testing.T, _, place string) { mkdir(t, filepath.Dir(place), 0o770) },
		"of all":     func(t *testing.T, _, place string) { mkdir(t, filepath.Dir(place), 0o777|fs.ModeSticky) },
		"further up": func(t *testing.T, dir, place string) { mkdir(t, filepath.Dir(place), 0o700); chmod(t, dir, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, bawn.Egress{})
			keep := filepath.Join(c.Dir, "keep")
			if err := os.WriteFile(keep, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			trap(t, c.Dir, c.Place)
			before, _ := os.Lstat(c.Place)
			s, err := whole(t.Context(), c, nil, newMailbox().send)
			if err == nil {
				t.Error("the session began")
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
			after, _ := os.Lstat(c.Place)
			if !there(t, keep) || (before == nil) != (after == nil) {
				t.Errorf("before: %v, after: %v, neighbour is there: %v", before, after, there(t, keep))
			}
		})
	}
}

func mkdir(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// What is placed: only what the rules need, readable, in a directory that is
// the user's alone, and gone with the session.
func TestPlaced(t *testing.T) {
	c := config(t, bawn.Egress{Hosts: []string{"a.test"}})
	s, err := whole(t.Context(), c, nil, newMailbox().send)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(c.Place); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the place: %v, %v", info.Mode(), err)
	}
	hosts, err := os.ReadFile(filepath.Join(c.Place, "hosts"))
	if err != nil || !strings.HasPrefix(string(hosts), "127.0.0.1 localhost\n") {
		t.Errorf("hosts: %q, %v", hosts, err)
	}
	if list, _ := os.ReadDir(c.Place); len(list) != 2 || s.ca != nil || s.ssh != nil || len(s.ready.Env) > 0 {
		t.Errorf("a session that opens nothing has %v, %q", list, s.ready.Env)
	}
	if err := s.close(); err != nil || there(t, c.Place) {
		t.Errorf("after the end: %v, there: %v", err, there(t, c.Place))
	}

	c = config(t, bawn.Egress{Git: []string{"git.test fetch"}})
	s, _ = begin(t, c, "SSL_CERT_FILE="+roots(t), "JAVA_TOOL_OPTIONS=-Xmx1g")
	known, err := os.ReadFile(filepath.Join(c.Place, "ssh_known_hosts"))
	if err != nil || !strings.HasPrefix(string(known), "git.test ssh-ed25519 ") && !strings.HasPrefix(string(known), "git.test ") {
		t.Errorf("known hosts: %q, %v", known, err)
	}
	bundle, err := os.ReadFile(filepath.Join(c.Place, "trust", trust.Bundle))
	if err != nil || !strings.Contains(string(bundle), "the host's roots") || !strings.Contains(string(bundle), "BEGIN CERTIFICATE") || strings.Contains(string(bundle), "PRIVATE") {
		t.Errorf("bundle of %d bytes, %v", len(bundle), err)
	}
	if !strings.Contains(strings.Join(s.ready.Env, "\n"), "SSL_CERT_FILE="+inGuest+"/trust/") {
		t.Errorf("environment %q", s.ready.Env)
	}
	for _, f := range s.ready.Files {
		if !strings.HasPrefix(f.Source, c.Place+"/") || !filepath.IsAbs(f.Target) || !there(t, f.Source) {
			t.Errorf("placed %+v", f)
		}
	}
	filepath.WalkDir(c.Place, func(path string, d fs.DirEntry, err error) error {
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s: %v, %v; want nobody else to write it", path, info.Mode(), err)
		}
		return err
	})
}

func roots(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(path, []byte("# the host's roots\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Without somebody to ask a question is a no, at once.
func TestNobodyCanAnswer(t *testing.T) {
	for _, can := range []bool{false, true} {
		c := config(t, bawn.Egress{})
		c.CanAsk, c.Ask = can, 50_000_000 // 50 ms
		s, box := begin(t, c)
		d := s.guard.Check(context.Background(), s.action("unknown.test:443"), s.event)
		if d.Verdict != bawn.Deny {
			t.Errorf("can ask: %v: %+v", can, d)
		}
		if asked := len(box.messages) > 0; asked != can {
			t.Errorf("can ask: %v, was asked: %v", can, asked)
		}
		if events := recorded(t, s); len(events) != 1 || events[0].Resolved != bawn.Deny || events[0].Requested != bawn.Ask {
			t.Errorf("recorded %+v", events)
		}
	}
}

func TestEnviron(t *testing.T) {
	e := environ{"A=1", "AB=2", "A=3", "EMPTY=", "odd"}
	for name, want := range map[string]string{"A": "3", "AB": "2", "EMPTY": "", "odd": "", "": "", "B": ""} {
		if got := e.get(name); got != want {
			t.Errorf("%q is %q; want %q", name, got, want)
		}
	}
}

// Java's store of roots is made meanwhile: it is empty when the sandbox is made
// and whole a little later, and a session that ends before is not held up.
func TestJavaStore(t *testing.T) {
	c := config(t, bawn.Egress{Git: []string{"git.test fetch"}})
	store := filepath.Join(c.Place, "trust", trust.JavaStore)
	s, box := begin(t, c, "JAVA_HOME=/opt/java")
	if info, err := os.Stat(store); err != nil || info.Size() != 0 || info.Mode() != 0o444 {
		t.Fatalf("%v, %v; want an empty file that nobody may write", info, err)
	}
	s.finish()
	if text, err := os.ReadFile(store); err != nil || len(text) < 100 || len(box.denials()) > 0 {
		t.Errorf("%d bytes, %v; told %v", len(text), err, box.denials())
	}

	c = config(t, bawn.Egress{Git: []string{"git.test fetch"}})
	box = newMailbox()
	s, err := whole(t.Context(), c, environ{"JAVA_HOME=/opt/java"}, box.send)
	if err := errors.Join(err, s.close()); err != nil {
		t.Fatal(err)
	}
	s.finish()
	if there(t, c.Place) || len(box.denials()) > 0 {
		t.Errorf("after the end the place is there: %v, told %v", there(t, c.Place), box.denials())
	}
	s.later = []func() error{func() error { return errors.New("no space left") }}
	s.finish()
	if told := box.denials(); len(told) != 1 || told[0].Rule != ruleTrust || told[0].Reason != "no space left" {
		t.Errorf("told %+v", told)
	}
}
