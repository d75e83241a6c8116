package webui

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAuthority(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	a, err := OpenAuthority(dir, "bawn.example.org", c.now)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "web-ca-bawn.example.org.pem")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v; want mode 0600", info.Mode(), err)
	}
	again, err := OpenAuthority(dir, "bawn.example.org", c.now)
	if err != nil || again.Fingerprint() != a.Fingerprint() || strings.Count(a.Fingerprint(), ":") != 31 {
		t.Errorf("opened again: %v, fingerprints %q %q", err, a.Fingerprint(), again.Fingerprint())
	}
	if bytes.Contains(a.PEM(), []byte("PRIVATE")) {
		t.Error("the key is given away")
	}
	leaf, err := a.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	c.forward(leafTime - renewBefore)
	if next, err := a.Certificate(); err != nil || next == leaf {
		t.Errorf("30 days before its end the certificate is the old one: %v", err)
	}
	c.forward(authorityTime)
	if next, err := OpenAuthority(dir, "bawn.example.org", c.now); err != nil || next.Fingerprint() == a.Fingerprint() {
		t.Errorf("after its end the authority is the old one: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(dir, "bawn.example.org", c.now); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("a key that others can read: %v; want a refusal", err)
	}
}

// TestAuthorityNamesOneHost: who trusts the authority trusts it for the page
// only. The control is the page's own certificate.
func TestAuthorityNamesOneHost(t *testing.T) {
	a, err := OpenAuthority(t.TempDir(), "bawn.example.org", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for name, want := range map[string]bool{"bawn.example.org": true, "bank.example.com": false, "example.org": false} {
		other := &Authority{name: name, now: time.Now, key: a.key, cert: a.cert}
		leaf, err := other.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		if (err == nil) != want {
			t.Errorf("%s: %v; want accepted %v", name, err, want)
		}
	}
}

// TestFileCertificate: a certificate of the user's own is read anew when it was
// renewed, and a key that others can read is refused.
func TestFileCertificate(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func() string {
		a, err := OpenAuthority(t.TempDir(), "localhost", c.now)
		if err != nil {
			t.Fatal(err)
		}
		data, err := a.renew()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{cert, key} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return string(a.cert.Raw)
	}
	first := write()
	get, err := FileCertificate(cert, key, c.now)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if have, err := get(); err != nil || string(have.Certificate[0]) != want {
			t.Errorf("not the certificate that is wanted: %v", err)
		}
	}
	is(first)
	second := write()
	is(first)
	c.forward(rereadEvery)
	is(second)
	if err := os.WriteFile(cert, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.forward(rereadEvery)
	is(second)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := FileCertificate(cert, key, c.now); err == nil {
		t.Error("a key that others can read is used")
	}
}

// TestNames: passkeys need a name.
func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"localhost": true, "bawn.example.org": true, "127.0.0.1": false, "::1": false, "": false, "Bawn.example.org": false, "a b": false, "bawn.example.org.": false} {
		o := Options{Name: name, Port: 443, Certificate: func() (*tls.Certificate, error) { return nil, nil }, Items: &memory{}, Recorder: &records{}, API: apiOfRig, Files: page, Now: time.Now, Log: discard}
		if _, err := New(t.Context(), o); (err == nil) != want {
			t.Errorf("%q: %v; want accepted %v", name, err, want)
		}
	}
}
