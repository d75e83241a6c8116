package mitm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	lifetime  = 31 * 24 * time.Hour // a session lasts 30 days at most
	backdated = time.Hour           // the guest's clock may lag
	maxLeaves = 1024                // minted certificates kept
)

// A CA is one session's certificate authority. Its key lives in memory only
// and dies with the process; nothing outside the session's guest trusts it.
// The zero CA mints nothing.
type CA struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewCA makes the authority of a session: ECDSA on P-256, valid from an hour
// before now to 31 days after it.
func NewCA(session string, now time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("the session's CA: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Bawn session CA", Organization: []string{"Bawn"}, OrganizationalUnit: []string{clip(session)}},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs leaves only
	}
	cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return &CA{key: key, cert: cert, leaves: map[string]*tls.Certificate{}}, nil
}

// clip keeps a name within the 64 characters of RFC 5280's upper bounds.
func clip(s string) string { return s[:min(len(s), 64)] }

// newSerial returns 127 random bits: RFC 5280 section 4.1.2.2 wants a positive
// number of at most 20 octets.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("a certificate's serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("a certificate for %q: %w", template.Subject, err)
	}
	return x509.ParseCertificate(der)
}

// Leaf returns a certificate for exactly this host, which is in normal form: a
// name or an address. It is minted once and kept.
func (ca *CA) Leaf(host string) (*tls.Certificate, error) {
	if ca == nil || ca.cert == nil {
		return nil, fmt.Errorf("no certificate for %q: the session has no CA", host)
	}
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if leaf := ca.leaves[host]; leaf != nil {
		return leaf, nil
	}
	leaf, err := ca.mint(host)
	if err != nil {
		return nil, err
	}
	if len(ca.leaves) >= maxLeaves {
		clear(ca.leaves)
	}
	ca.leaves[host] = leaf
	return leaf, nil
}

func (ca *CA) mint(host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("a key for %q: %w", host, err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"Bawn"}, CommonName: clip(host)},
		NotBefore:    ca.cert.NotBefore,
		NotAfter:     ca.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// Without it Go marks a leaf as nothing; strict clients want CA:FALSE.
		BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	cert, err := sign(template, ca.cert, key, ca.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw, ca.cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}

// PEM returns the authority's certificate, without its key.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

// WriteBundle writes the system's roots, which are PEM, with ours behind them.
func (ca *CA) WriteBundle(w io.Writer, system io.Reader) error {
	if _, err := io.Copy(w, system); err != nil {
		return fmt.Errorf("the roots of the system: %w", err)
	}
	_, err := w.Write(append([]byte{'\n'}, ca.PEM()...)) // their last line may have no end
	return err
}
