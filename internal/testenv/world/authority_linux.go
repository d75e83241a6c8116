package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// An Authority is the one that a world trusts. Its certificate is the machine's
// bundle, etc/ca.pem.
type Authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	leaves *sync.Map // by name
}

// MakeAuthority writes a new authority's certificate and key.
func MakeAuthority(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority of the world"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "etc/ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644),
		os.WriteFile(filepath.Join(dir, "ca.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}

// ReadAuthority reads what MakeAuthority wrote.
func ReadAuthority(dir string) (Authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "etc/ca.pem"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return Authority{}, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return Authority{}, errors.New("the key is of another kind")
	}
	return Authority{cert: pair.Leaf, key: key, leaves: &sync.Map{}}, nil
}

// leaf returns a certificate for a name or an address, the same each time.
func (a Authority) leaf(name string) (*tls.Certificate, error) {
	if c, ok := a.leaves.Load(name); ok {
		return c.(*tls.Certificate), nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if addr := net.ParseIP(name); addr != nil {
		form.IPAddresses = []net.IP{addr}
	} else {
		form.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	a.leaves.Store(name, c)
	return c, nil
}

// ForHello makes the certificate of the name that a client asks for, or of the
// address that it has reached.
func (a Authority) ForHello(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := h.ServerName
	if name == "" {
		host, _, err := net.SplitHostPort(h.Conn.LocalAddr().String())
		if err != nil {
			return nil, err
		}
		name = host
	}
	return a.leaf(name)
}
