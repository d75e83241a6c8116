package ticket

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// MaxTTL is the longest life of a ticket: it also bounds for how long a
// verifier remembers.
const MaxTTL = time.Hour

const (
	maxSession  = 128 // bytes of a session's name
	maxEnvelope = 1024
	payloadType = "application/vnd.bawn.ticket"
	version     = 1
)

// A claim is what is signed.
type claim struct {
	id              [16]byte
	issued, expires int64 // ns since 1970
	digest          [32]byte
	session         string
}

// claimHead is what stands before the session: version, id, both times, digest.
const claimHead = 1 + 16 + 8 + 8 + 32

func (c claim) encode() []byte {
	b := append([]byte{version}, c.id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.issued))
	b = binary.BigEndian.AppendUint64(b, uint64(c.expires))
	b = append(b, c.digest[:]...)
	b = append(b, byte(len(c.session)))
	return append(b, c.session...)
}

// decodeClaim reads what encode writes and nothing else.
func decodeClaim(b []byte) (claim, error) {
	if len(b) == 0 || b[0] != version {
		return claim{}, refuse(RuleVersion, "it is of another version; want %d", version)
	}
	if len(b) < claimHead+1 || int(b[claimHead]) != len(b)-claimHead-1 {
		return claim{}, refuse(RuleMalformed, "it has %d bytes, which is not what it says", len(b))
	}
	c := claim{
		id: [16]byte(b[1:17]), issued: int64(binary.BigEndian.Uint64(b[17:])), expires: int64(binary.BigEndian.Uint64(b[25:])),
		digest: [32]byte(b[33:65]), session: string(b[claimHead+1:]),
	}
	if c.expires <= c.issued || c.issued < 0 || c.expires-c.issued > int64(MaxTTL) || c.session == "" || len(c.session) > maxSession || c.digest == [32]byte{} {
		return claim{}, refuse(RuleMalformed, "no ticket has such a session, digest or life")
	}
	return c, nil
}

// pae is what the signature is over (DSSE, "pre-authentication encoding").
func pae(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// An envelope is a claim with one signature, in DSSE's JSON. It is written in
// one way: no blanks, members in this order, padded standard base64.
type envelope struct {
	payload, sig []byte
	key          string
}

// The text between the variable parts.
const (
	beforePayload = `{"payload":"`
	beforeKey     = `","payloadType":"` + payloadType + `","signatures":[{"keyid":"`
	beforeSig     = `","sig":"`
	afterSig      = `"}]}`
)

func (e envelope) encode() []byte {
	b := base64.StdEncoding.AppendEncode([]byte(beforePayload), e.payload)
	b = append(b, beforeKey...)
	b = append(b, e.key...)
	b = append(b, beforeSig...)
	b = base64.StdEncoding.AppendEncode(b, e.sig)
	return append(b, afterSig...)
}

// open reads what encode writes and nothing else: what it read is written
// again and compared.
func open(data []byte) (envelope, error) {
	if len(data) > maxEnvelope {
		return envelope{}, refuse(RuleSize, "it has %d bytes; want at most %d", len(data), maxEnvelope)
	}
	rest := bytes.TrimPrefix(data, []byte(beforePayload))
	payload, rest, _ := bytes.Cut(rest, []byte(beforeKey))
	key, rest, _ := bytes.Cut(rest, []byte(beforeSig))
	sig := bytes.TrimSuffix(rest, []byte(afterSig))
	e := envelope{key: string(key)}
	var err1, err2 error
	e.payload, err1 = base64.StdEncoding.AppendDecode(nil, payload)
	e.sig, err2 = base64.StdEncoding.AppendDecode(nil, sig)
	if err1 != nil || err2 != nil || len(e.sig) != ed25519.SignatureSize || !bytes.Equal(e.encode(), data) {
		return envelope{}, refuse(RuleMalformed, "it is not a ticket as an issuer writes it")
	}
	return e, nil
}

// A Key is a public key that signs tickets, or did.
type Key struct {
	Public ed25519.PublicKey
	// Until is when the last ticket expires that a retired key has signed: it
	// signs nothing that lives longer. Zero for the key in use.
	Until time.Time
}

// ID names the key in envelopes: the SHA-256 of its bytes, in hexadecimal.
func (k Key) ID() string {
	sum := sha256.Sum256(k.Public)
	return hex.EncodeToString(sum[:])
}
