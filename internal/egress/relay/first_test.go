package relay

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// tlsHello is what a real client of TLS says first.
func tlsHello(c *tls.Config) string {
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		tls.Client(client, c).Handshake()
		client.Close()
	}()
	b := make([]byte, 16<<10)
	n, _ := server.Read(b)
	return string(b[:n])
}

func helloFor(name string) string {
	return tlsHello(&tls.Config{ServerName: name, InsecureSkipVerify: name == ""})
}

// hiddenHello is for site, and for another host that is encrypted (RFC 9849).
func hiddenHello(t *testing.T) string {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	vector := func(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }
	contents := "\x07\x00\x20" + vector(string(key.PublicKey().Bytes())) + vector("\x00\x01\x00\x01") + "\x00" + string([]byte{byte(len(site))}) + site + vector("")
	return tlsHello(&tls.Config{ServerName: "evil.example", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: []byte(vector("\xfe\x0d" + vector(contents)))})
}

// A catch is a server that keeps what it gets.
type catch struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (c *catch) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.Write(b)
}

func (c *catch) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

func (c *catch) serve(conn net.Conn) { io.Copy(c, conn) }

const (
	ours   = "GET / HTTP/1.1\r\nHost: " + site + ":9000\r\n\r\n"
	theirs = "GET /secret HTTP/1.1\r\nHost: evil.example\r\n\r\n"
)

// On a port of no protocol, what names another host than the one that was
// dialled is refused before the host gets a byte of it, whatever came before;
// everything else passes as it is.
func TestFirstBytes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pieces []string // with pauses between, in which a word is passed on
		passes string   // what the host gets
		rule   string   // of the refusal, or ""
	}{
		{"nothing", nil, "", ""},
		{"binary", []string{"\x00\x01\x02"}, "\x00\x01\x02", ""},
		{"a word, then more", []string{"JDWP-Handshake", "\x00\x01"}, "JDWP-Handshake\x00\x01", ""},
		{"byte by byte", []string{"J", "D", "W"}, "JDW", ""},
		{"ssh", []string{"SSH-2.0-x\r\n"}, "SSH-2.0-x\r\n", ""},
		{"h2c", []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
		{"tls", []string{"hello:" + site}, "hello:" + site, ""},
		{"http", []string{ours}, ours, ""},
		{"slow http", []string{ours[:7], ours[7:]}, ours, ""},

		{"tls for another", []string{"hello:evil.example"}, "", RuleAgree},
		{"tls for none", []string{"hello:"}, "", RuleProtocol},
		{"tls with ech", []string{"ech"}, "", RuleAgree},
		{"tls, half", []string{"\x16\x03\x01\x00\x80\x01"}, "", "-"},
		{"http for another", []string{theirs}, "", RuleAgree},
		{"http for none", []string{"GET / HTTP/1.1\r\n\r\n"}, "", RuleProtocol},
		{"http, half", []string{"GET / HTTP/1.1\r\nHost: evil"}, "", "-"},
		{"slow http for another", []string{theirs[:7], theirs[7:]}, theirs[:7], RuleAgree},
		{"slower", []string{"G", "E", "T / HTTP/1.1\r\nHost: e", "vil.example\r\n\r\n"}, "GE", RuleAgree},
		{"white space first", []string{"\r\n", "\r\n", theirs}, "\r\n\r\n", RuleProtocol},
		{"much of it", []string{strings.Repeat("\r\n", 20<<10) + theirs}, "", RuleProtocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var host catch
			r := newRig(t, host.serve, func(r *rig) { r.pause = 20 * time.Millisecond })
			c := r.connect()
			for i, text := range tt.pieces {
				switch before := strings.Join(tt.pieces[:i], ""); {
				case i > 0 && strings.HasPrefix(tt.passes, before):
					testenv.Until(t, "what came before to be passed on", func() bool { return host.String() == before })
				case i > 0:
					time.Sleep(5 * r.pause)
				}
				io.WriteString(c, first(t, text))
			}
			c.CloseWrite()
			answer, _ := io.ReadAll(c)
			e := r.recorded("end", 1)
			if got := host.String(); got != first(t, tt.passes) && !(strings.HasPrefix(tt.passes, "hello:") && len(got) > 100) {
				t.Errorf("the host got %q", got)
			}
			switch tt.rule {
			case "":
				if e.Resolved != bawn.Allow || e.Reason != "" || len(r.denied()) > 0 {
					t.Errorf("recorded %+v, told %v; want it to pass", e, r.denied())
				}
			case "-":
				if e.Reason == "" {
					t.Error("the record does not say why it ended")
				}
			default:
				if e.Resolved != bawn.Deny || e.Rule != tt.rule || !slices.Equal(r.denied(), []string{tt.rule}) {
					t.Errorf("recorded %+v, told %v; want %s", e, r.denied(), tt.rule)
				}
				checkAnswer(t, strings.HasPrefix(first(t, tt.pieces[0]), "\x16"), string(answer))
			}
		})
	}
}

// first returns what a piece stands for.
func first(t *testing.T, text string) string {
	if name, ok := strings.CutPrefix(text, "hello:"); ok {
		return helloFor(name)
	}
	if text == "ech" {
		return hiddenHello(t)
	}
	return text
}

// checkAnswer wants a refusal in the client's own protocol.
func checkAnswer(t *testing.T, isTLS bool, answer string) {
	t.Helper()
	want := "HTTP/1.1 403 Forbidden\r\n"
	if isTLS {
		want = "\x15\x03\x03\x00\x02\x02\x31" // fatal, access_denied
	}
	if !strings.HasPrefix(answer, want) {
		t.Errorf("the client was told %q; want %q", answer, want)
	}
}

// A server that speaks first is heard before the guest has said anything, and
// a word of the guest reaches it although nothing follows.
func TestServerFirst(t *testing.T) {
	r := newRig(t, func(c net.Conn) {
		io.WriteString(c, "220 ready\r\n")
		b := make([]byte, 4)
		io.ReadFull(c, b)
		fmt.Fprintf(c, "got %s", b)
	}, func(r *rig) { r.pause = 20 * time.Millisecond })
	c := r.connect()
	b := make([]byte, 11)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "220 ready\r\n" {
		t.Fatalf("got %q, %v", b, err)
	}
	io.WriteString(c, "QUIT") // no end of line: it could still become anything
	if b, err := io.ReadAll(c); err != nil || string(b) != "got QUIT" {
		t.Errorf("got %q, %v", b, err)
	}
}
