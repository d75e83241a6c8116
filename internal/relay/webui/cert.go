package webui

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// How long certificates hold. Browsers accept leaves of at most 825 days from
// an authority that a user added.
const (
	authorityTime = 5 * 365 * 24 * time.Hour
	leafTime      = 90 * 24 * time.Hour
	renewBefore   = 30 * 24 * time.Hour
	backdated     = time.Hour // another machine's clock may lag
	maxPEM        = 64 << 10
)

// An Authority is the user's own: it can name one host only, so that who
// trusts it trusts nothing else. Its key stays on this machine.
type Authority struct {
	name string
	now  func() time.Time
	key  *ecdsa.PrivateKey
	cert *x509.Certificate

	mu   sync.Mutex
	leaf *tls.Certificate
}

// OpenAuthority returns the authority for name that is kept in dir. It makes a new
// one if there is no authority yet, or if the authority is about to expire. Its
// file holds the key and has mode 0600; a file with wider permissions is refused.
func OpenAuthority(dir, name string, now func() time.Time) (*Authority, error) {
	path := filepath.Join(dir, "web-ca-"+name+".pem")
	a := &Authority{name: name, now: now}
	data, err := readPrivate(path)
	if err == nil {
		if err = a.parse(data); err != nil {
			return nil, fmt.Errorf("authority in %q: %w; remove it for a new one, which devices must trust anew", path, err)
		}
		if now().Add(renewBefore).Before(a.cert.NotAfter) {
			return a, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if data, err = a.renew(); err != nil {
		return nil, fmt.Errorf("make an authority for %q: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return a, atomicfile.Write(path, data, 0o600)
}

// readPrivate reads a file that holds a secret.
func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%q has mode %04o, so others can read it; want 0600: chmod 600 %q", path, info.Mode().Perm(), path)
	}
	if err != nil {
		return nil, err
	}
	return atomicfile.ReadOpen(f, maxPEM)
}

func (a *Authority) parse(data []byte) error {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA || pair.Leaf.Subject.CommonName != commonName(a.name) {
		return errors.New("it is no authority of this name")
	}
	a.key, a.cert = key, pair.Leaf
	return nil
}

func commonName(name string) string { return "Bawn CA for " + name }

// renew makes key and certificate anew and returns both as PEM.
func (a *Authority) renew() ([]byte, error) {
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	raw, err := a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName(a.name), Organization: []string{"Bawn"}},
		NotAfter:              a.now().Add(authorityTime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{a.name},
	}, nil, &a.key.PublicKey)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return append(a.PEM(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
}

// sign signs a template, by itself where parent is nil.
func (a *Authority) sign(template, parent *x509.Certificate, public *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.NotBefore = serial, a.now().Add(-backdated)
	if parent == nil {
		parent = template
	}
	return x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
}

// PEM returns the authority's certificate, without its key.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Fingerprint returns the SHA-256 of the authority's certificate as browsers
// show it: AB:CD:…
func (a *Authority) Fingerprint() string {
	sum := sha256.Sum256(a.cert.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

// Certificate returns the server's certificate, a new one in time before the
// old one ends.
func (a *Authority) Certificate() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaf != nil && a.now().Add(renewBefore).Before(a.leaf.Leaf.NotAfter) {
		return a.leaf, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: a.name}, NotAfter: a.now().Add(leafTime), DNSNames: []string{a.name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}, a.cert, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	a.leaf = &tls.Certificate{Certificate: [][]byte{raw, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
	return a.leaf, nil
}

// rereadEvery is how often files of a certificate are looked at.
const rereadEvery = time.Minute

// FileCertificate returns the certificate of two PEM files, which are read
// anew when they change: other programs renew them. The key's file must be
// readable to its owner only.
func FileCertificate(certPath, keyPath string, now func() time.Time) (func() (*tls.Certificate, error), error) {
	f := &fileCertificate{certPath: certPath, keyPath: keyPath, now: now}
	if _, err := f.get(); err != nil {
		return nil, err
	}
	return f.get, nil
}

type fileCertificate struct {
	certPath, keyPath string
	now               func() time.Time

	mu   sync.Mutex
	have *tls.Certificate
	read time.Time
}

// get keeps the old certificate where the new one can't be read: files are
// replaced one after the other.
func (f *fileCertificate) get() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.have != nil && f.now().Sub(f.read) < rereadEvery {
		return f.have, nil
	}
	cert, err := f.load()
	switch {
	case err == nil:
		f.have = cert
	case f.have == nil:
		return nil, fmt.Errorf("certificate %q with key %q: %w", f.certPath, f.keyPath, err)
	}
	f.read = f.now()
	return f.have, nil
}

func (f *fileCertificate) load() (*tls.Certificate, error) {
	certPEM, err := atomicfile.Read(f.certPath, maxPEM)
	if err != nil {
		return nil, err
	}
	keyPEM, err := readPrivate(f.keyPath)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	return &pair, err
}
