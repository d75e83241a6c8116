package relay

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A recorder is a Handler that keeps what it was given.
type recorder struct {
	catch
	targets chan Target
}

func newRecorder() *recorder { return &recorder{targets: make(chan Target, 9)} }

func (w *recorder) Serve(_ context.Context, conn net.Conn, t Target) error {
	defer conn.Close()
	w.targets <- t
	w.serve(conn)
	return nil
}

// What is said on the ports of the web must be for the host that was dialled,
// and in the protocol of the port. TLS that is not opened goes to the host as
// it is; what is opened, and HTTP, goes to who speaks HTTP.
func TestHello(t *testing.T) {
	const address = "192.0.2.7"
	plain := func(host string) string { return "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }
	for _, tt := range []struct {
		name   string
		host   string
		port   uint16
		said   string
		opened bool
		rule   string // of the refusal, or "": where it goes otherwise
		to     string
	}{
		{"tls", site, 443, "hello:" + site, false, "", "host"},
		{"tls in capitals", site, 443, "hello:A.Example", false, "", "host"},
		{"tls, opened", site, 443, "hello:" + site, true, "", "http"},
		{"ech, opened", site, 443, "ech", true, "", "http"},
		{"tls to an address", address, 443, "hello:", false, "", "host"},
		{"http", site, 80, plain(site), false, "", "http"},
		{"http to an address", address, 80, plain(address), false, "", "http"},
		{"http to an address of version 6", "2001:db8::7", 80, plain("[2001:db8::7]"), false, "", "http"},
		{"http to the host's loopback", "127.0.0.1", 80, plain("localhost"), false, "", "http"},
		{"h2c", site, 80, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false, "", "http"},
		{"http where requests are decided", site, 8080, plain(site), true, "", "http"},

		{"another name", site, 443, "hello:evil.example", false, RuleAgree, ""},
		{"another name, opened", site, 443, "hello:evil.example", true, RuleAgree, ""},
		{"no name", site, 443, "hello:", false, RuleProtocol, ""},
		{"a name to an address", address, 443, "hello:evil.example", false, RuleAgree, ""},
		{"ech", site, 443, "ech", false, RuleAgree, ""},
		{"http to 443", site, 443, plain(site), false, RuleProtocol, ""},
		{"tls to 80", site, 80, "hello:" + site, false, RuleProtocol, ""},
		{"http for another", site, 80, plain("evil.example"), false, RuleAgree, ""},
		{"http for localhost", site, 80, plain("localhost"), false, RuleAgree, ""},
		{"another name to the loopback", "127.0.0.1", 80, plain("evil.example"), false, RuleAgree, ""},
		{"connect", site, 80, "CONNECT evil.example:443 HTTP/1.1\r\nHost: " + site + "\r\n\r\n", false, RuleProtocol, ""},
		{"bytes to 443", site, 443, "\x00\x01\x02\x03", false, RuleProtocol, ""},
		{"bytes to 80", site, 80, "\x00\x01\x02\x03", false, RuleProtocol, ""},
		{"ssh to 443", site, 443, "SSH-2.0-x\r\n", false, RuleProtocol, ""},
		{"old tls", site, 443, "\x80\x2e\x01\x03\x01", false, RuleProtocol, ""},
		{"half a hello", site, 443, "\x16\x03\x01\x00\x80\x01", false, "-", ""},
		{"nothing", site, 443, "", false, "-", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var host catch
			http := newRecorder()
			r := newRig(t, host.serve, func(r *rig) {
				r.HTTP = http
				r.Classes.HTTP = func(string, uint16) bool { return tt.opened }
			})
			r.dialled(tt.host, tt.port)
			said := first(t, tt.said)
			c := r.connect()
			io.WriteString(c, said)
			c.CloseWrite()
			answer, err := io.ReadAll(c)
			e := r.recorded("end", 1)
			got := map[string]int{"host": len(host.String()), "http": len(http.String())}
			for where, n := range got {
				if want := map[bool]int{true: len(said)}[where == tt.to]; n != want {
					t.Errorf("%s got %d bytes; want %d", where, n, want)
				}
			}
			switch tt.rule {
			case "":
				if e.Resolved != bawn.Allow || e.Reason != "" {
					t.Errorf("recorded %+v", e)
				}
			case "-":
				if !isReset(err) || e.Reason == "" {
					t.Errorf("got %q, %v, recorded %+v; want a reset", answer, err, e)
				}
			default:
				if e.Resolved != bawn.Deny || e.Rule != tt.rule || e.Reason == "" || !slices.Equal(r.denied(), []string{tt.rule}) {
					t.Errorf("recorded %+v, told %v; want %s", e, r.denied(), tt.rule)
				}
				if isTLS := said[0] == 22; isTLS || strings.Contains(said, " HTTP/1.1\r\n") {
					checkAnswer(t, isTLS, string(answer))
				}
			}
		})
	}
}

// The handler is told whether what it reads is TLS.
func TestHandlerTarget(t *testing.T) {
	http := newRecorder()
	r := newRig(t, echo, func(r *rig) {
		r.HTTP = http
		r.Classes.HTTP = func(string, uint16) bool { return true }
	})
	r.dialled(site, 443)
	r.says(helloFor(site))
	if got, want := testenv.Receive(t, "the target", http.targets), (Target{Host: site, Port: 443, TLS: true}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	r.dialled(site, 80)
	r.says("GET / HTTP/1.1\r\nHost: " + site + "\r\n\r\n")
	if got, want := testenv.Receive(t, "the target", http.targets), (Target{Host: site, Port: 80}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if r.dials.Load() != 0 {
		t.Error("the relay dialled for a handler, which does so itself")
	}
}

// SSH that rules speak of is ended here, on any port; other SSH passes.
func TestSSH(t *testing.T) {
	shells := newRecorder()
	var host catch
	r := newRig(t, host.serve, func(r *rig) {
		r.SSH = shells
		r.Classes = Classes{HTTP: func(h string, _ uint16) bool { return h == "git.example" }, SSH: func(h string, _ uint16) bool { return h == "git.example" }}
	})
	const banner = "SSH-2.0-OpenSSH\r\n"
	for _, port := range []uint16{22, 443} {
		r.dialled("git.example", port)
		r.says(banner)
		if got := testenv.Receive(t, "the target", shells.targets); got.Host != "git.example" || got.Port != port {
			t.Errorf("%d: %+v", port, got)
		}
	}
	r.dialled("other.example", 22)
	r.says(banner)
	r.recorded("end", 3)
	if host.String() != banner || shells.String() != banner+banner {
		t.Errorf("the host got %q, the server %q", host.String(), shells.String())
	}
}
