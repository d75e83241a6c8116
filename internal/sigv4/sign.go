package sigv4

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
)

// Unsigned is the payload hash of a body that is not signed.
const Unsigned = "UNSIGNED-PAYLOAD"

// ErrSignature says that a signature was not made with the key.
var ErrSignature = errors.New("stands beside a signature that was not made with it; the client has to use the key it finds in the session, and sign what it sends")

// Verify finds the reading of the path with which a's signature verifies. The
// error is ErrSignature, or says which signed header is missing.
func (a Authorization) Verify(r Request, secret []byte) (Reading, error) {
	for _, reading := range []Reading{AsSent, Twice, Strict} {
		signature, err := a.Sign(r, secret, reading)
		if err != nil {
			return AsSent, err
		}
		if subtle.ConstantTimeCompare([]byte(signature), []byte(a.Signature)) == 1 {
			return reading, nil
		}
	}
	return AsSent, ErrSignature
}

// Sign returns the signature of a request over a's scope and headers, as 64
// hex digits ("Create a signed AWS API request", steps 1 to 4). What it makes
// of the secret on the way is overwritten.
func (a Authorization) Sign(r Request, secret []byte, reading Reading) (string, error) {
	canonical, err := r.canonical(a.Signed, reading)
	if err != nil {
		return "", err
	}
	at, err := r.time()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{algorithm, at.Format(stamp), a.scopeText(), hex.EncodeToString(sum[:])}, "\n")
	key := make([]byte, 0, len("AWS4")+len(secret))
	key = append(append(key, "AWS4"...), secret...)
	defer clear(key)
	out := make([]byte, sha256.Size)
	mac(out, key, a.Date)
	for _, step := range []string{a.Region, a.Service, ending, text} {
		mac(out, out, step)
	}
	return hex.EncodeToString(out), nil
}

// mac is HMAC-SHA256 (RFC 2104): out may be key. crypto/hmac would keep the
// padded key in memory that nobody can overwrite.
func mac(out, key []byte, text string) {
	block := make([]byte, sha256.BlockSize)
	defer clear(block)
	h := sha256.New()
	defer h.Reset()
	if len(key) > len(block) {
		h.Write(key)
		h.Sum(block[:0])
		h.Reset()
	} else {
		copy(block, key)
	}
	for i := range block {
		block[i] ^= 0x36
	}
	h.Write(block)
	h.Write([]byte(text))
	inner := h.Sum(nil)
	h.Reset()
	for i := range block {
		block[i] ^= 0x36 ^ 0x5c
	}
	h.Write(block)
	h.Write(inner)
	h.Sum(out[:0])
}
