package mitm

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// certificates gives f each certificate of PEM text and its number, in memory that it
// uses again. It leaves out what has not the form of a certificate.
func certificates(text io.Reader, f func(i int, cert []byte) error) error {
	lines := bufio.NewReader(text)
	var body, cert []byte
	for i, inside := 0, false; ; {
		line, err := lines.ReadSlice('\n') // or a part of one that is long
		line = bytes.TrimSpace(line)
		switch {
		case string(line) == "-----BEGIN CERTIFICATE-----":
			inside, body = true, body[:0]
		case inside && string(line) == "-----END CERTIFICATE-----":
			inside = false
			cert = slices.Grow(cert[:0], base64.StdEncoding.DecodedLen(len(body)))
			n, failed := base64.StdEncoding.Decode(cert[:cap(cert)], body)
			if failed == nil && formed(cert[:n]) {
				if err := f(i, cert[:n]); err != nil {
					return err
				}
			}
			i++
		case inside:
			body = append(body, line...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// formed reports whether b has the parts of a certificate (RFC 5280, section 4.1).
// Java reads no store in which one has not.
func formed(b []byte) bool {
	in := cryptobyte.String(b)
	var cert, tbs cryptobyte.String
	if !in.ReadASN1(&cert, asn1.SEQUENCE) || !in.Empty() ||
		!cert.ReadASN1(&tbs, asn1.SEQUENCE) || !cert.SkipASN1(asn1.SEQUENCE) || !cert.SkipASN1(asn1.BIT_STRING) || !cert.Empty() ||
		!tbs.SkipOptionalASN1(explicit) || !tbs.SkipASN1(asn1.INTEGER) {
		return false
	}
	for range 5 { // the algorithm, the issuer, the time, the subject, its key
		if !tbs.SkipASN1(asn1.SEQUENCE) {
			return false
		}
	}
	return true
}
