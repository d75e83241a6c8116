package mitm

import (
	"bufio"
	der "encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"

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
	pkcs12Version    = []byte{byte(asn1.INTEGER), 1, 3}
	sessionRootAlias = "bawn session ca"
)

// WriteJavaTrustStore writes the system's roots, which are PEM, and ours as the
// PKCS#12 file that Java reads in place of its cacerts. It has no password and
// no MAC: Java opens its default store without a password, and would find
// nothing in one that needs it.
//
// It reads the roots twice, first for their size: a session's process that held
// them, parsed, would keep their memory.
func (ca *CA) WriteJavaTrustStore(w io.Writer, system io.ReadSeeker) error {
	size := 0
	err := ca.bags(system, func(bag []byte) error { size += len(bag); return nil })
	if err == nil {
		_, err = system.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("the trust store for Java: %w", err)
	}
	data := identifier(oidData)
	out := bufio.NewWriter(w)
	_, _ = out.Write(open(nil, size, 0, // Flush says what failed
		level{tag: asn1.SEQUENCE, before: pkcs12Version},
		level{tag: asn1.SEQUENCE, before: data}, level{tag: explicit}, level{tag: asn1.OCTET_STRING},
		level{tag: asn1.SEQUENCE},
		level{tag: asn1.SEQUENCE, before: data}, level{tag: explicit}, level{tag: asn1.OCTET_STRING},
		level{tag: asn1.SEQUENCE},
	))
	err = ca.bags(system, func(bag []byte) error {
		size -= len(bag)
		_, err := out.Write(bag)
		return err
	})
	if err == nil && size != 0 {
		err = errors.New("the system's roots have changed meanwhile")
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("the trust store for Java: %w", err)
	}
	return nil
}

// bags gives f a bag for each certificate, in memory that it uses again.
func (ca *CA) bags(system io.Reader, f func([]byte) error) error {
	b := bagger{
		certBag: identifier(oidCertBag), x509: identifier(oidX509),
		trustedUsage: identifier(oidTrustedUsage), anyUsage: identifier(oidAnyUsage), friendlyName: identifier(oidFriendlyName),
	}
	if err := f(b.bag(ca.cert.Raw, sessionRootAlias)); err != nil {
		return err
	}
	return certificates(system, func(i int, cert []byte) error { return f(b.bag(cert, "system root "+strconv.Itoa(i))) })
}

// A bagger has encoded identifiers, and memory that it uses again.
type bagger struct {
	certBag, x509, trustedUsage, anyUsage, friendlyName []byte
	name, attributes, whole                             []byte
}

// bag returns one certificate, which Java trusts for every use. Its attributes are
// in the order of their encoding: the shorter first.
func (g *bagger) bag(cert []byte, name string) []byte {
	g.name = g.name[:0]
	for _, c := range []byte(name) { // which is ASCII
		g.name = append(g.name, 0, c)
	}
	a := open(g.attributes[:0], len(g.anyUsage), 0, level{asn1.SEQUENCE, g.trustedUsage}, level{tag: asn1.SET})
	a = append(a, g.anyUsage...)
	a = open(a, len(g.name), 0, level{asn1.SEQUENCE, g.friendlyName}, level{tag: asn1.SET}, level{tag: bmpString})
	a = append(a, g.name...)
	b := open(g.whole[:0], len(cert), headSize(len(a))+len(a), level{asn1.SEQUENCE, g.certBag}, level{tag: explicit},
		level{asn1.SEQUENCE, g.x509}, level{tag: explicit}, level{tag: asn1.OCTET_STRING})
	b = append(head(append(b, cert...), asn1.SET, len(a)), a...)
	g.attributes, g.whole = a, b
	return b
}

func identifier(id der.ObjectIdentifier) []byte {
	encoded, err := der.Marshal(id)
	if err != nil {
		panic("BUG(bawn): " + err.Error()) // a constant
	}
	return encoded
}

// A level is an element of DER around another one, with what comes before that.
type level struct {
	tag    asn1.Tag
	before []byte
}

// open appends the beginning of nested elements, the outermost first. So many bytes
// are in the innermost one, and so many after it in the outermost.
func open(b []byte, inner, after int, levels ...level) []byte {
	var sizes [16]int
	for i, n := len(levels)-1, inner; i >= 0; i-- {
		if n += len(levels[i].before); i == 0 {
			n += after
		}
		sizes[i] = n
		n += headSize(n)
	}
	for i, l := range levels {
		b = append(head(b, l.tag, sizes[i]), l.before...)
	}
	return b
}

// head appends an element's tag and size.
func head(b []byte, tag asn1.Tag, size int) []byte {
	b = append(b, byte(tag))
	n := headSize(size) - 2
	if n == 0 {
		return append(b, byte(size))
	}
	b = append(b, 0x80|byte(n))
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(size>>(8*i)))
	}
	return b
}

// headSize is how long head is.
func headSize(size int) int {
	if size < 0x80 {
		return 2
	}
	return 2 + (bits.Len(uint(size))+7)/8
}
