package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxPkt is the length of the longest pkt-line with its four digits
// (gitprotocol-common(5)).
const maxPkt = 65520

// ErrNoCommands says that a stream ended before the first command: the client
// has looked at the refs and wants nothing.
var ErrNoCommands = errors.New("the client has sent no command")

// A pktReader reads pkt-lines and keeps the bytes as they came.
type pktReader struct {
	r    io.Reader
	max  int // bytes that may be read in all
	kept bytes.Buffer
}

// next returns the payload of one pkt-line; flush is true, and the payload
// nil, for a flush packet. Delimiters and other special packets have no place
// in a push and are refused, as is an end of the stream.
func (p *pktReader) next() (payload []byte, flush bool, err error) {
	head, err := p.take(4)
	if err != nil {
		return nil, false, err
	}
	n, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("pkt-line length %q; want four hexadecimal digits", head)
	case n == 0:
		return nil, true, nil
	case n < 4 || n > maxPkt:
		return nil, false, fmt.Errorf("pkt-line length %q; want 0000, or 0004 to %04x", head, maxPkt)
	}
	payload, err = p.take(int(n) - 4)
	return payload, false, err
}

// take reads n bytes. The result stays valid: the buffer may move, but the
// bytes that were read are not written again.
func (p *pktReader) take(n int) ([]byte, error) {
	if p.kept.Len()+n > p.max {
		return nil, fmt.Errorf("more than %d bytes of commands; push fewer refs at once", p.max)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(p.r, b); err != nil {
		if errors.Is(err, io.EOF) && p.kept.Len() == 0 {
			return nil, ErrNoCommands
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read pkt-line: %w", err)
	}
	p.kept.Write(b)
	return b, nil
}
