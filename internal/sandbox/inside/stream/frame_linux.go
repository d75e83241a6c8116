package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/bawn-dev/bawn/internal/intent"
)

// Kinds of frame.
const (
	kindControl  = iota + 1 // a message of the control socket, and its descriptors
	kindShut                // no more messages of the control socket
	kindData                // bytes for a channel
	kindEnd                 // the last frame of a channel's direction
	kindCredit              // so many bytes more may be sent
	kindReset               // nobody reads any more
	kindTerminal            // a terminal that a later message refers to
	kindSize                // a terminal's new size
	kindDial                // connect a channel to a port
	kindDialed              // and what came of it
	kindLast
)

const (
	header = 9 // kind, channel, length of the body

	// chunk is the most that one frame of data holds, and window what may be on
	// its way in one direction of a channel, in bytes.
	chunk  = 32 << 10
	window = 128 << 10

	// maxControl is a message with the descriptors it refers to.
	maxControl = intent.MaxFrame + 1 + intent.MaxFiles*descriptor
	descriptor = 5 // what it is, and its channel
)

// A terminal's settings travel as the kernel's own structures (termios of
// asm-generic/termbits.h, winsize of ioctl_tty(2)): both ends are the same
// architecture.
const (
	sizeSize     = 8
	settingsSize = 4*4 + 1 + 19 + 2*4 + sizeSize
)

// A frame is what travels through the byte stream.
type frame struct {
	kind byte
	id   uint32
	body []byte
}

// limit is the longest body that a kind of frame may have.
func limit(kind byte) int {
	switch kind {
	case kindControl:
		return maxControl
	case kindData:
		return chunk
	case kindTerminal:
		return settingsSize
	case kindSize:
		return sizeSize
	case kindCredit, kindDialed:
		return 4
	case kindDial:
		return 2
	}
	return 0
}

// readFrame reads one frame. It returns io.EOF where the stream ends between
// two of them. A length is believed only as far as its kind may have it.
func readFrame(r io.Reader) (frame, error) {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[0], id: binary.BigEndian.Uint32(head[1:])}
	n := binary.BigEndian.Uint32(head[5:])
	switch {
	case f.kind == 0 || f.kind >= kindLast:
		return frame{}, fmt.Errorf("a frame of kind %d, which there is not", f.kind)
	case uint64(n) > uint64(limit(f.kind)):
		return frame{}, fmt.Errorf("a frame of kind %d with %d bytes; want at most %d", f.kind, n, limit(f.kind))
	case !variable(f.kind) && int(n) != limit(f.kind):
		return frame{}, fmt.Errorf("a frame of kind %d with %d bytes; want %d", f.kind, n, limit(f.kind))
	}
	f.body = make([]byte, n)
	if _, err := io.ReadFull(r, f.body); err != nil {
		return frame{}, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return f, nil
}

// variable reports whether bodies of a kind differ in length.
func variable(kind byte) bool { return kind == kindControl || kind == kindData }

// encode writes a frame.
func (f frame) encode() []byte {
	b := append(make([]byte, 0, header+len(f.body)), f.kind)
	b = binary.BigEndian.AppendUint32(b, f.id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.body)))
	return append(b, f.body...)
}

// number is the body of a frame that holds one.
func number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// What a descriptor of a message becomes in the sandbox.
const (
	readable = 'r' // the end of a pipe that is read
	writable = 'w' // the end of a pipe that is written
	tty      = 't' // a terminal of the sandbox
)

// A reference names the channel of a descriptor.
type reference struct {
	what byte
	id   uint32
}

// encodeControl writes a message and what its descriptors are.
func encodeControl(message []byte, refs []reference) []byte {
	b := append(make([]byte, 0, 1+len(refs)*descriptor+len(message)), byte(len(refs)))
	for _, r := range refs {
		b = binary.BigEndian.AppendUint32(append(b, r.what), r.id)
	}
	return append(b, message...)
}

// decodeControl reads what encodeControl has written.
func decodeControl(b []byte) (message []byte, refs []reference, err error) {
	if len(b) == 0 || b[0] > intent.MaxFiles || len(b) < 1+int(b[0])*descriptor {
		return nil, nil, errors.New("a message whose descriptors can't be read")
	}
	n := int(b[0])
	b = b[1:]
	for range n {
		r := reference{b[0], binary.BigEndian.Uint32(b[1:])}
		if r.what != readable && r.what != writable && r.what != tty {
			return nil, nil, fmt.Errorf("a descriptor of kind %q, which there is not", r.what)
		}
		refs, b = append(refs, r), b[descriptor:]
	}
	return b, refs, nil
}
