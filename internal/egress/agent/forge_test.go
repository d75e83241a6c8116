package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/bawn-dev/bawn/internal/egress/hostkey"
)

// A bench is a connection to the filter with an agent in memory behind it, and
// two servers' keys: good is permitted, evil is not.
type bench struct {
	*conn
	key        ssh.PublicKey // of the user's
	good, evil ssh.Signer
	why        []string
	uses       []Use
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{good: signer(t), evil: signer(t)}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	keys, err := keyring.List()
	if err != nil {
		t.Fatal(err)
	}
	b.key = keys[0]
	file := filepath.Join(t.TempDir(), "known_hosts")
	lines := knownhosts.Line([]string{"good.example"}, b.good.PublicKey()) + "\n" + knownhosts.Line([]string{"evil.example"}, b.evil.PublicKey()) + "\n"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := hostkey.Load(t.TempDir(), file)
	if err != nil {
		t.Fatal(err)
	}
	b.conn = &conn{up: keyring.(agent.ExtendedAgent), Agent: &Agent{
		Upstream: func(context.Context) (net.Conn, error) { return nil, fmt.Errorf("not here") },
		Known:    known, Hosts: func() []Host { return []Host{{"good.example", 22}} },
		Keys:    func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), b.key.Marshal()) },
		Record:  func(u Use) error { b.uses = append(b.uses, u); return nil },
		Refused: func(err error) { b.why = append(b.why, err.Error()) },
	}}
	return b
}

func signer(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// id is the id of session n.
func id(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

func pack(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case byte:
			out = append(out, p)
		case bool:
			out = append(out, map[bool]byte{true: 1}[p])
		case uint32:
			out = binary.BigEndian.AppendUint32(out, p)
		case string:
			out = appendString(out, []byte(p))
		case []byte:
			out = appendString(out, p)
		default:
			panic(fmt.Sprintf("BUG(bawn): %T", p))
		}
	}
	return out
}

// bindMessage is a session-bind in which server claims key and signs session.
func bindMessage(key ssh.PublicKey, session []byte, by ssh.Signer, signed []byte, forwarding bool) []byte {
	signature, err := by.Sign(rand.Reader, signed)
	if err != nil {
		panic(err)
	}
	return pack(byte(extension), sessionBind, key.Marshal(), session, ssh.Marshal(signature), forwarding)
}

func (b *bench) bindTo(s ssh.Signer, session []byte) []byte {
	return bindMessage(s.PublicKey(), session, s, session, false)
}

func (b *bench) login(session []byte) []byte {
	return pack(session, byte(userauthRequest), "git", "ssh-connection", "publickey", true, "ssh-ed25519", b.key.Marshal())
}

func (b *bench) hostbound(session []byte, host ssh.PublicKey) []byte {
	return pack(session, byte(userauthRequest), "git", "ssh-connection", hostbound, true, "ssh-ed25519", b.key.Marshal(), host.Marshal())
}

func (b *bench) signs(data []byte) []byte {
	return pack(byte(signRequest), b.key.Marshal(), data, uint32(0))
}

// TestForgedMessages speaks the protocol by hand. The last message of each row
// must not get a signature; the rows before them are the control.
func TestForgedMessages(t *testing.T) {
	plain := newBench(t)
	good, evil := plain.good, plain.evil
	signed := func(b *bench) []byte { return b.signs(b.login(id(1))) }
	tests := []struct {
		name     string
		messages func(b *bench) [][]byte
		want     string // "" is a signature
	}{
		{"login", func(b *bench) [][]byte { return [][]byte{b.bindTo(b.good, id(1)), signed(b)} }, ""},
		{"hostbound login", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(b.hostbound(id(1), b.good.PublicKey()))}
		}, ""},
		{"bound twice to the same", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), b.bindTo(b.good, id(1)), signed(b)}
		}, ""},
		{"no bind", func(b *bench) [][]byte { return [][]byte{signed(b)} }, "without session-bind"},
		{"bound to another host", func(b *bench) [][]byte { return [][]byte{b.bindTo(b.evil, id(1)), signed(b)} }, "known_hosts does not have the host key"},
		{"another session", func(b *bench) [][]byte { return [][]byte{b.bindTo(b.good, id(2)), signed(b)} }, "another session"},
		{"replayed bind, then the real one", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(2)), b.bindTo(b.evil, id(1)), signed(b)}
		}, "bound to a session already"},
		{"second session of the host", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(2)), b.bindTo(b.good, id(1)), signed(b)}
		}, "bound to a session already"},
		{"from behind a forwarding", func(b *bench) [][]byte {
			return [][]byte{bindMessage(b.good.PublicKey(), id(2), b.good, id(2), true), b.bindTo(b.good, id(1)), signed(b)}
		}, "after one that was refused"},
		{"another's signature", func(b *bench) [][]byte {
			return [][]byte{bindMessage(b.good.PublicKey(), id(1), b.evil, id(1), false), signed(b)}
		}, "not the server's"},
		{"signature of another session", func(b *bench) [][]byte {
			return [][]byte{bindMessage(b.good.PublicKey(), id(1), b.good, id(2), false), signed(b)}
		}, "not the server's"},
		{"forwarding", func(b *bench) [][]byte {
			return [][]byte{bindMessage(b.good.PublicKey(), id(1), b.good, id(1), true), signed(b)}
		}, "forwarding"},
		{"odd boolean", func(b *bench) [][]byte {
			m := b.bindTo(b.good, id(1))
			m[len(m)-1] = 2
			return [][]byte{m, signed(b)}
		}, "forwarding"},
		{"bind cut off", func(b *bench) [][]byte {
			m := b.bindTo(b.good, id(1))
			return [][]byte{m[:len(m)-1], signed(b)}
		}, "can't be read"},
		{"bind with more behind it", func(b *bench) [][]byte {
			return [][]byte{append(b.bindTo(b.good, id(1)), 0), signed(b)}
		}, "can't be read"},
		{"hostbound to another", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(b.hostbound(id(1), b.evil.PublicKey()))}
		}, "another host key"},
		{"hostbound to nothing", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(append(b.hostboundHead(id(1)), 0, 0, 0, 0))}
		}, "without a host key"},
		{"login cut off", func(b *bench) [][]byte {
			l := b.login(id(1))
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(l[:len(l)-1])}
		}, "no login"},
		{"login with more behind it", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(append(b.login(id(1)), 0))}
		}, "no login"},
		{"key in the login is another", func(b *bench) [][]byte {
			data := pack(id(1), byte(userauthRequest), "git", "ssh-connection", "publickey", true, "ssh-ed25519", good.PublicKey().Marshal())
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(data)}
		}, "another key"},
		{"key that is not permitted", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), pack(byte(signRequest), evil.PublicKey().Marshal(), b.login(id(1)), uint32(0))}
		}, "may not use the key"},
		{"another service", func(b *bench) [][]byte {
			data := pack(id(1), byte(userauthRequest), "git", "ssh-userauth", "publickey", true, "ssh-ed25519", b.key.Marshal())
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(data)}
		}, "want ssh-connection"},
		{"host-based login", func(b *bench) [][]byte {
			data := pack(id(1), byte(userauthRequest), "git", "ssh-connection", "hostbased", true, "ssh-ed25519", b.key.Marshal())
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(data)}
		}, "want ssh-connection"},
		{"any bytes", func(b *bench) [][]byte { return [][]byte{b.bindTo(b.good, id(1)), b.signs(id(7))} }, "no login"},
		{"no bytes", func(b *bench) [][]byte { return [][]byte{b.bindTo(b.good, id(1)), b.signs(nil)} }, "no login"},
		{"text", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), b.signs(append([]byte(sshsig), pack("git", "", "sha256", id(1))...))}
		}, "namespace"},
		{"text torn", func(b *bench) [][]byte { return [][]byte{b.signs([]byte(sshsig))} }, "no text's signature"},
		{"unknown flag", func(b *bench) [][]byte {
			return [][]byte{b.bindTo(b.good, id(1)), pack(byte(signRequest), b.key.Marshal(), b.login(id(1)), uint32(1))}
		}, "can't be read"},
		{"another extension", func(b *bench) [][]byte { return [][]byte{pack(byte(extension), "query")} }, "not permitted"},
		{"smart card", func(b *bench) [][]byte { return [][]byte{pack(byte(20), "/lib/x.so", "")} }, "only listing"},
		{"lock", func(b *bench) [][]byte { return [][]byte{pack(byte(22), "x")} }, "only listing"},
		{"unlock", func(b *bench) [][]byte { return [][]byte{pack(byte(23), "x")} }, "only listing"},
		{"version 1", func(b *bench) [][]byte { return [][]byte{{1}} }, "only listing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			var last []byte
			for _, m := range tt.messages(b) {
				last = b.answer(slices.Clone(m))
			}
			signed := last[0] == signResponse
			if signed != (tt.want == "") || len(b.uses) > 0 != signed || !strings.Contains(strings.Join(b.why, "\n"), tt.want) {
				t.Errorf("signed: %v, uses %v, reasons %q; want %q", signed, b.uses, b.why, tt.want)
			}
		})
	}
}

// hostboundHead is a hostbound login without its host key.
func (b *bench) hostboundHead(session []byte) []byte {
	return pack(session, byte(userauthRequest), "git", "ssh-connection", hostbound, true, "ssh-ed25519", b.key.Marshal())
}

// TestMessageSize: a length is not believed before it has been bounded.
func TestMessageSize(t *testing.T) {
	for _, n := range []uint32{0, maxMessage + 1, 1 << 31} {
		if _, err := readMessage(bytes.NewReader(binary.BigEndian.AppendUint32(nil, n))); err == nil || !strings.Contains(err.Error(), "bytes; want") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// FuzzAnswer: whatever a guest sends after a bind to the evil server, nothing
// is signed and nothing breaks.
func FuzzAnswer(f *testing.F) {
	b := newBench(f)
	f.Add([]byte{requestIdentities})
	f.Add(b.bindTo(b.evil, id(1)))
	f.Add(b.signs(b.login(id(1))))
	f.Add(b.signs(b.hostbound(id(1), b.evil.PublicKey())))
	f.Add(b.signs(append([]byte(sshsig), pack("git", "", "sha256", id(1))...)))
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) == 0 || len(message) > maxMessage {
			return
		}
		b.why = nil
		if got := b.answer(message); got[0] == signResponse || len(b.uses) > 0 {
			t.Errorf("%x was answered with %x, uses %v", message, got, b.uses)
		}
	})
}
