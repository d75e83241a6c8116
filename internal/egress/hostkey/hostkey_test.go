package hostkey

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func newKey(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	var private any
	var err error
	switch kind {
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t testing.TB, lines ...string) *Known {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	k, err := Load(work, filepath.Join(work, "absent"), file)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return k
}

func line(key ssh.PublicKey, hosts ...string) string { return knownhosts.Line(hosts, key) }

// certificate makes a host certificate for names, signed by authority.
func certificate(t *testing.T, authority ssh.Signer, kind uint32, names ...string) ssh.PublicKey {
	t.Helper()
	now := uint64(time.Now().Unix())
	c := &ssh.Certificate{Key: newKey(t, "").PublicKey(), CertType: kind, ValidPrincipals: names, ValidAfter: now - 60, ValidBefore: now + 60}
	if err := c.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheck(t *testing.T) {
	key, other, authority := newKey(t, ""), newKey(t, ""), newKey(t, "ecdsa")
	hashed := knownhosts.HashHostname("h.example") + strings.TrimPrefix(line(key.PublicKey(), "h.example"), "h.example")
	byAuthority := "@cert-authority *.example" + strings.TrimPrefix(line(authority.PublicKey(), "x"), "x")
	revoked := "@revoked *" + strings.TrimPrefix(line(key.PublicKey(), "x"), "x")
	tests := []struct {
		name  string
		lines []string
		port  uint16
		key   ssh.PublicKey
		want  error
		fails bool // with any error
	}{
		{"plain", []string{line(key.PublicKey(), "h.example")}, 22, key.PublicKey(), nil, false},
		{"hashed", []string{hashed}, 22, key.PublicKey(), nil, false},
		{"one of two", []string{line(other.PublicKey(), "h.example"), line(key.PublicKey(), "h.example")}, 22, key.PublicKey(), nil, false},
		{"port", []string{line(key.PublicKey(), "h.example:2222")}, 2222, key.PublicKey(), nil, false},
		{"certificate", []string{byAuthority}, 22, certificate(t, authority, ssh.HostCert, "h.example"), nil, false},
		{"nothing", nil, 22, key.PublicKey(), ErrUnknown, false},
		{"another host", []string{line(key.PublicKey(), "i.example")}, 22, key.PublicKey(), ErrUnknown, false},
		{"another port", []string{line(key.PublicKey(), "h.example")}, 2222, key.PublicKey(), ErrUnknown, false},
		{"changed", []string{line(other.PublicKey(), "h.example")}, 22, key.PublicKey(), ErrChanged, false},
		{"revoked", []string{line(key.PublicKey(), "h.example"), revoked}, 22, key.PublicKey(), ErrRevoked, false},
		{"certificate for another", []string{byAuthority}, 22, certificate(t, authority, ssh.HostCert, "i.example"), nil, true},
		{"certificate for a user", []string{byAuthority}, 22, certificate(t, authority, ssh.UserCert, "h.example"), nil, true},
		{"certificate of a stranger", []string{byAuthority}, 22, certificate(t, other, ssh.HostCert, "h.example"), nil, true},
	}
	for _, tt := range tests {
		err := load(t, tt.lines...).Check("h.example", tt.port, tt.key)
		if !errors.Is(err, tt.want) && !tt.fails || tt.fails && err == nil {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := new(Known).Check("h.example", 22, key.PublicKey()); !errors.Is(err, ErrUnknown) {
		t.Errorf("the zero Known: %v", err)
	}
}

func TestAlgorithms(t *testing.T) {
	rsaKey, ecdsaKey := newKey(t, "rsa").PublicKey(), newKey(t, "ecdsa").PublicKey()
	k := load(t, line(rsaKey, "r.example"), line(ecdsaKey, "e.example"), "@cert-authority *.ca"+strings.TrimPrefix(line(ecdsaKey, "x"), "x"), line(ecdsaKey, "h.ca"))
	for host, want := range map[string][]string{
		"r.example": {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
		"e.example": {ssh.KeyAlgoECDSA256},
		"h.ca":      append(slices.Clone(certificates), ssh.KeyAlgoECDSA256),
		"i.ca":      certificates,
	} {
		if got, err := k.Algorithms(host, 22); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v; want %q", host, got, err, want)
		}
	}
	if got, err := k.Algorithms("z.example", 22); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestBrokenRevocation: a revocation that can't be read stops everything.
func TestBrokenRevocation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	for _, text := range []string{"x\n @revoked", "@revoked [x " + line(newKey(t, "").PublicKey(), "h")} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := Load(t.TempDir(), file); err == nil || !strings.Contains(err.Error(), "@revoked") {
			t.Errorf("%q: got %v, %v", text, k, err)
		}
	}
}

// FuzzLoad: no line makes the others useless.
func FuzzLoad(f *testing.F) {
	good := line(newKey(f, "").PublicKey(), "good.example")
	for _, l := range []string{good, "x", "@revoked", "@cert-authority * ssh-ed25519 AAAA", "|1|x|y ssh-ed25519 AAAA", "[x " + strings.TrimPrefix(good, "good.example "), "|1|a|b|c" + strings.TrimPrefix(good, "good.example"), "!" + good, "*,?:[]:1" + strings.TrimPrefix(good, "good.example"), strings.Repeat("x", 70000)} {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, l string) {
		if strings.Contains(l, "@revoked") {
			return
		}
		k := load(t, l, good)
		_, _, key, _, _, err := ssh.ParseKnownHosts([]byte(good))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Check("good.example", 22, key); errors.Is(err, ErrUnknown) {
			t.Errorf("%q hides the next line: %v", l, err)
		}
	})
}

// TestNamesAndLines: what is told of a host names it alone, whatever form
// known_hosts has it in.
func TestNamesAndLines(t *testing.T) {
	key, authority := newKey(t, "").PublicKey(), newKey(t, "ecdsa").PublicKey()
	rest := strings.TrimPrefix(line(key, "x"), "x")
	k := load(t, "# a comment", "b.example,a.example,10.0.0.1"+rest, "[p.example]:2222"+rest, knownhosts.HashHostname("h.example")+rest,
		"@cert-authority *.ca,c.ca"+strings.TrimPrefix(line(authority, "x"), "x"), "@revoked r.example"+strings.TrimPrefix(line(authority, "x"), "x"), "broken")
	if got, want := k.Names(), []string{"10.0.0.1", "a.example", "b.example", "c.ca"}; !slices.Equal(got, want) {
		t.Errorf("Names: %q, want %q", got, want)
	}
	text := strings.TrimSpace(rest)
	for host, want := range map[string]string{
		"a.example": "a.example " + text + "\n", "h.example": "h.example " + text + "\n", "z.example": "", "p.example": "",
		"d.ca": "@cert-authority d.ca " + strings.TrimPrefix(line(authority, "x"), "x ") + "\n",
	} {
		if got := string(k.Lines(host)); got != want {
			t.Errorf("Lines(%q): %q, want %q", host, got, want)
		}
	}
}
