package audit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
)

// A position is a place between two records: how many stand before it, the
// hash of the last of them and their size in bytes. The zero position is the
// beginning of a log.
type position struct {
	seq  uint64
	hash digest
	size int64
}

const (
	headMagic  = "bawn-audit-head 1 "
	headDigits = 20 // as many as 2^64 has
	headSize   = len(headMagic) + headDigits + 1 + hexSize + 1 + headDigits + 1
)

// head returns the head file's content for p: always of the same size, so that
// it is replaced by one write and never half old, half new.
func (p position) head() []byte {
	return fmt.Appendf(make([]byte, 0, headSize), "%s%0*d %x %0*d\n",
		headMagic, headDigits, p.seq, p.hash, headDigits, p.size)
}

// parseHead reads a head file's content. It accepts exactly what head writes.
func parseHead(b []byte) (position, bool) {
	var p position
	if len(b) != headSize {
		return p, false
	}
	fields := bytes.Fields(b[len(headMagic):])
	if len(fields) != 3 || hex.DecodedLen(len(fields[1])) != len(p.hash) || !decodeHex(&p.hash, fields[1]) {
		return position{}, false
	}
	var err1, err2 error
	p.seq, err1 = strconv.ParseUint(string(fields[0]), 10, 64)
	p.size, err2 = strconv.ParseInt(string(fields[2]), 10, 64)
	if err1 != nil || err2 != nil || p.size < 0 || !bytes.Equal(p.head(), b) {
		return position{}, false
	}
	return p, true
}

func (p position) String() string {
	return fmt.Sprintf("record %d, %d bytes, hash %x", p.seq, p.size, p.hash)
}
