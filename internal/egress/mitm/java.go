package mitm

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"software.sslmate.com/src/go-pkcs12"
)

// JavaTrustStore returns the system's roots, which are PEM, and ours as the
// PKCS#12 file that Java reads in place of its cacerts. It has no password and
// no MAC: Java opens its default store without a password, and would find
// nothing in one that needs it.
func (ca *CA) JavaTrustStore(system []byte) ([]byte, error) {
	entries := []pkcs12.TrustStoreEntry{{Cert: ca.cert, FriendlyName: "bawn session ca"}}
	for i := 0; ; i++ {
		block, rest := pem.Decode(system)
		if block == nil {
			break
		}
		system = rest
		cert, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue // a root that Go can't read is one Java does not get
		}
		entries = append(entries, pkcs12.TrustStoreEntry{Cert: cert, FriendlyName: fmt.Sprintf("system root %d", i)})
	}
	out, err := pkcs12.Passwordless.EncodeTrustStoreEntries(entries, "")
	if err != nil {
		return nil, fmt.Errorf("the trust store for Java: %w", err)
	}
	return out, nil
}
