package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/redact"
)

// A digest is a SHA-256 sum.
type digest = [sha256.Size]byte

// The parts of a line. There is exactly one way to write a record, so that no
// byte of it can change without notice.
const (
	partSeq   = `{"v":1,"seq":`
	partPrev  = `,"prev":"`
	partEvent = `","event":`
	partHash  = `,"hash":"`
	partEnd   = `"}`

	hexSize  = 2 * sha256.Size
	tailSize = len(partHash) + hexSize + len(partEnd)

	maxEvent = 64 << 10       // bytes of an event
	maxLine  = maxEvent + 512 // bytes of a line with its newline
)

// A record is one line of the log, taken apart. Its slices share the line's
// memory.
type record struct {
	seq   uint64
	prev  digest
	event []byte
	hash  digest
}

// appendRecord appends a record's line, with its newline, and returns its hash.
func appendRecord(dst []byte, seq uint64, prev digest, event []byte) ([]byte, digest) {
	start := len(dst)
	dst = append(dst, partSeq...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, partPrev...)
	dst = hex.AppendEncode(dst, prev[:])
	dst = append(dst, partEvent...)
	dst = append(dst, event...)
	hash := sha256.Sum256(dst[start:])
	dst = append(dst, partHash...)
	dst = hex.AppendEncode(dst, hash[:])
	dst = append(dst, partEnd...)
	return append(dst, '\n'), hash
}

var (
	errForm  = errors.New("not in the form of a record")
	errHash  = errors.New("hash does not fit its content")
	errEvent = errors.New("event is not JSON as the log writes it")
)

// parseRecord takes a line, without its newline, apart. It accepts exactly what
// appendRecord writes.
func parseRecord(line []byte) (record, error) {
	var r record
	rest, ok := bytes.CutPrefix(line, []byte(partSeq))
	if !ok || len(rest) < tailSize {
		return r, errForm
	}
	body, tail := rest[:len(rest)-tailSize], rest[len(rest)-tailSize:]
	if r.seq, body, ok = cutNumber(body); !ok {
		return r, errForm
	}
	if body, ok = bytes.CutPrefix(body, []byte(partPrev)); !ok || len(body) < hexSize {
		return r, errForm
	}
	if !decodeHex(&r.prev, body[:hexSize]) {
		return r, errForm
	}
	if r.event, ok = bytes.CutPrefix(body[hexSize:], []byte(partEvent)); !ok {
		return r, errForm
	}
	if !parseTail(&r.hash, tail) {
		return r, errForm
	}
	if sha256.Sum256(line[:len(line)-tailSize]) != r.hash {
		return record{}, errHash
	}
	if !canonical(r.event) {
		return record{}, errEvent
	}
	return r, nil
}

func parseTail(hash *digest, tail []byte) bool {
	sum, ok := bytes.CutPrefix(tail, []byte(partHash))
	return ok && decodeHex(hash, sum[:hexSize]) && string(sum[hexSize:]) == partEnd
}

// cutNumber cuts a decimal number without leading zeros from the front of b.
func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == 0 || b[0] == '0' {
		return 0, b, false
	}
	n, err := strconv.ParseUint(string(b[:i]), 10, 64)
	return n, b[i:], err == nil
}

// decodeHex decodes lower-case digits only: upper-case ones would be a second
// way to write the same record.
func decodeHex(dst *digest, src []byte) bool {
	for _, c := range src {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(dst[:], src)
	return err == nil
}

// canonical reports whether event is one JSON object that shows every
// character it holds, as encode writes it: a line is safe on a terminal.
func canonical(event []byte) bool {
	return len(event) > 1 && event[0] == '{' && len(event) <= maxEvent &&
		json.Valid(event) && utf8.Valid(event) && !bytes.ContainsFunc(event, redact.Invisible)
}
