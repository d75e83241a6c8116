package mitm

import (
	"bytes"
	"crypto/x509"
	der "encoding/asn1"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"testing"
)

// bundle is what WriteBundle writes.
func bundle(t testing.TB, ca *CA, system []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := ca.WriteBundle(&out, bytes.NewReader(system)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// javaStore is what WriteJavaTrustStore writes.
func javaStore(t testing.TB, ca *CA, system []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := ca.WriteJavaTrustStore(&out, bytes.NewReader(system)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A safe is one part of a PKCS#12 file (RFC 7292, section 4).
type safe struct {
	Type der.ObjectIdentifier
	Data []byte `asn1:"tag:0,explicit"`
}

// A stored certificate is a bag with its attributes.
type stored struct {
	Type der.ObjectIdentifier
	Cert struct {
		Type der.ObjectIdentifier
		DER  []byte `asn1:"tag:0,explicit"`
	} `asn1:"tag:0,explicit"`
	Attributes []struct {
		Type   der.ObjectIdentifier
		Values []der.RawValue `asn1:"set"`
	} `asn1:"set"`
}

// taken reads one value and nothing behind it, as encoding/asn1 does.
func taken[T any](t *testing.T, b []byte) (v T) {
	t.Helper()
	if rest, err := der.Unmarshal(b, &v); err != nil || len(rest) > 0 {
		t.Fatalf("%d bytes of %d are left: %v", len(rest), len(b), err)
	}
	return v
}

// storedIn takes a trust store apart.
func storedIn(t *testing.T, b []byte) []stored {
	t.Helper()
	file := taken[struct {
		Version int
		Safe    safe
	}](t, b)
	if file.Version != 3 || !file.Safe.Type.Equal(oidData) {
		t.Fatalf("a file of version %d with %v", file.Version, file.Safe.Type)
	}
	safes := taken[[]safe](t, file.Safe.Data)
	if len(safes) != 1 || !safes[0].Type.Equal(oidData) {
		t.Fatalf("%d safes", len(safes))
	}
	return taken[[]stored](t, safes[0].Data)
}

// TestJavaTrustStoreForm reads stores of no root, one and enough for sizes of three
// bytes with encoding/asn1. What has not the form of a certificate is not in one.
func TestJavaTrustStoreForm(t *testing.T) {
	for _, n := range []int{0, 1, 200} {
		ca, roots := newCA(t), [][]byte{}
		var text bytes.Buffer
		text.WriteString("# a remark\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		for range n {
			root := newCA(t).cert.Raw
			roots = append(roots, root)
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root})
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root[:len(root)-1]})
			_ = pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: root})
		}
		got := storedIn(t, javaStore(t, ca, text.Bytes()))
		if len(got) != n+1 || !bytes.Equal(got[0].Cert.DER, ca.cert.Raw) {
			t.Fatalf("%d certificates; want %d, ours first", len(got), n+1)
		}
		for i, s := range got[1:] {
			if _, err := x509.ParseCertificate(s.Cert.DER); err != nil || !bytes.Equal(s.Cert.DER, roots[i]) {
				t.Errorf("root %d is another: %v", i, err)
			}
			name := strings.ReplaceAll(string(s.Attributes[1].Values[0].Bytes), "\x00", "")
			if want := fmt.Sprintf("system root %d", 1+2*i); name != want || !s.Attributes[0].Type.Equal(oidTrustedUsage) {
				t.Errorf("root %d is called %q; want %q", i, name, want)
			}
		}
	}
}

// TestRootsThatChange fails where a file has grown between the two times that it is
// read: Java can't read a store with wrong sizes.
func TestRootsThatChange(t *testing.T) {
	ca, root := newCA(t), newCA(t).PEM()
	if err := ca.WriteJavaTrustStore(io.Discard, &growing{Reader: bytes.NewReader(root), then: bytes.Repeat(root, 2)}); err == nil {
		t.Error("no error")
	}
	if err := ca.WriteJavaTrustStore(io.Discard, &growing{Reader: bytes.NewReader(root), then: root}); err != nil {
		t.Error(err)
	}
}

// growing has another content once it is read again.
type growing struct {
	*bytes.Reader
	then []byte
}

func (g *growing) Seek(int64, int) (int64, error) {
	g.Reader = bytes.NewReader(g.then)
	return 0, nil
}
