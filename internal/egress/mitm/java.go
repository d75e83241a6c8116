package mitm

import (
	"crypto/x509"
	der "encoding/asn1"
	"encoding/pem"
	"fmt"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Object identifiers of a trust store (RFC 7292, RFC 2985, and Java's own
// TrustedKeyUsage).
var (
	oidData          = der.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidCertBag       = der.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 3}
	oidX509          = der.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 22, 1}
	oidFriendlyName  = der.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 20}
	oidTrustedUsage  = der.ObjectIdentifier{2, 16, 840, 1, 113894, 746875, 1, 1}
	oidAnyUsage      = der.ObjectIdentifier{2, 5, 29, 37, 0}
	bmpString        = asn1.Tag(30)
	explicit         = asn1.Tag(0).ContextSpecific().Constructed()
	pkcs12Version    = int64(3)
	sessionRootAlias = "bawn session ca"
)

// JavaTrustStore returns the system's roots, which are PEM, and ours as the
// PKCS#12 file that Java reads in place of its cacerts. It has no password and
// no MAC: Java opens its default store without a password, and would find
// nothing in one that needs it.
func (ca *CA) JavaTrustStore(system []byte) ([]byte, error) {
	b := cryptobyte.NewBuilder(make([]byte, 0, len(system)))
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(pkcs12Version)
		content(b, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				content(b, func(b *cryptobyte.Builder) { b.AddASN1(asn1.SEQUENCE, ca.bags(system)) })
			})
		})
	})
	out, err := b.Bytes()
	if err != nil {
		return nil, fmt.Errorf("the trust store for Java: %w", err)
	}
	return out, nil
}

// content adds data as a ContentInfo.
func content(b *cryptobyte.Builder, data cryptobyte.BuilderContinuation) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oidData)
		b.AddASN1(explicit, func(b *cryptobyte.Builder) { b.AddASN1(asn1.OCTET_STRING, data) })
	})
}

// bags adds a bag for each certificate.
func (ca *CA) bags(system []byte) cryptobyte.BuilderContinuation {
	return func(b *cryptobyte.Builder) {
		bag(b, ca.cert.Raw, sessionRootAlias)
		for i := 0; ; i++ {
			block, rest := pem.Decode(system)
			if block == nil {
				return
			}
			system = rest
			if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
				continue // a root that Go can't read is one Java does not get
			}
			bag(b, block.Bytes, fmt.Sprintf("system root %d", i))
		}
	}
}

// bag adds one certificate, which Java trusts for every use.
func bag(b *cryptobyte.Builder, cert []byte, name string) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oidCertBag)
		b.AddASN1(explicit, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1ObjectIdentifier(oidX509)
				b.AddASN1(explicit, func(b *cryptobyte.Builder) { b.AddASN1OctetString(cert) })
			})
		})
		b.AddASN1(asn1.SET, func(b *cryptobyte.Builder) { // in the order of its encoding: the shorter first
			attribute(b, oidTrustedUsage, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oidAnyUsage) })
			attribute(b, oidFriendlyName, func(b *cryptobyte.Builder) {
				b.AddASN1(bmpString, func(b *cryptobyte.Builder) {
					for _, unit := range utf16.Encode([]rune(name)) {
						b.AddUint16(unit)
					}
				})
			})
		})
	})
}

func attribute(b *cryptobyte.Builder, id der.ObjectIdentifier, value cryptobyte.BuilderContinuation) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(id)
		b.AddASN1(asn1.SET, value)
	})
}
