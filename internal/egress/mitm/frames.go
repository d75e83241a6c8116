package mitm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// errEcho ends a WebSocket whose host sent a secret back: its frames can't be
// rewritten.
var errEcho = errors.New("the host sent a secret back on a connection that can't be rewritten")

// errPacked ends a WebSocket whose host sends compressed frames, which can't be
// inspected.
var errPacked = errors.New("the host sent frames that can't be looked through for secrets that it got")

// maxFrames is how many bytes of a message wait for the next ones.
const maxFrames = 1 << 20

// A frame is a WebSocket's (RFC 6455 section 5.2), as it comes.
type frame struct {
	head    []byte // while it is not whole
	left    uint64 // bytes of the payload that are to come
	mask    [4]byte
	masked  bool
	at      int // bytes of the payload that went by
	control bool
	last    bool // of its message
}

// begin takes the head from b and returns the rest; whole says that the payload follows.
func (f *frame) begin(b []byte) (rest []byte, whole bool, err error) {
	for len(b) > 0 {
		f.head, b = append(f.head, b[0]), b[1:]
		if whole, err := f.parse(); whole || err != nil {
			return b, whole, err
		}
	}
	return b, false, nil
}

func (f *frame) parse() (whole bool, err error) {
	if f.head[0]&0x70 != 0 { // an extension's, and none was agreed on
		return false, errPacked
	}
	if len(f.head) < 2 {
		return false, nil
	}
	size, length := 0, uint64(f.head[1]&0x7f)
	switch length {
	case 126:
		size = 2
	case 127:
		size = 8
	}
	masked := f.head[1]&0x80 != 0
	need := 2 + size
	if masked {
		need += len(f.mask)
	}
	if len(f.head) < need {
		return false, nil
	}
	if size > 0 {
		var wide [8]byte
		copy(wide[8-size:], f.head[2:2+size])
		length = binary.BigEndian.Uint64(wide[:])
	}
	copy(f.mask[:], f.head[2+size:])
	f.left, f.masked, f.at = length, masked, 0
	f.control, f.last = f.head[0]&0x08 != 0, f.head[0]&0x80 != 0
	f.head = f.head[:0]
	return true, nil
}

// payload returns what of b is the frame's, readable.
func (f *frame) payload(b []byte) []byte {
	b = b[:min(uint64(len(b)), f.left)]
	f.left -= uint64(len(b))
	if f.masked { // hosts must not, and some guests take it
		b = bytes.Clone(b)
		for i := range b {
			b[i] ^= f.mask[(f.at+i)%len(f.mask)]
		}
	}
	f.at += len(b)
	return b
}

// A tripwire is the host's side of a WebSocket: it breaks when a value comes back, also
// in several frames. The possible beginning of a value waits while its message goes on.
type tripwire struct {
	io.ReadWriteCloser
	known   func() *echo
	frame   frame
	inside  bool   // of a payload
	message []byte // the last bytes sent, as many as a form has
	begun   int    // bytes at the end of message that may begin a value
	control []byte // the same of control frames
	held    []byte // came, and may not pass yet
	ready   []byte // may pass
	err     error
}

func (t *tripwire) Read(p []byte) (int, error) {
	for len(t.ready) == 0 && t.err == nil {
		chunk := make([]byte, max(len(p), 1))
		n, err := t.ReadWriteCloser.Read(chunk)
		wrong := t.take(chunk[:n])
		switch {
		case wrong != nil:
			t.ready, t.held, t.err = nil, nil, wrong
		case err != nil: // what would make a value of it does not follow
			t.ready, t.held, t.err = append(t.ready, t.held...), nil, err
		}
	}
	if len(t.ready) == 0 {
		return 0, t.err
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// take inspects the new bytes, and passes those that may.
func (t *tripwire) take(b []byte) error {
	for len(b) > 0 {
		if t.inside {
			said := t.frame.payload(b)
			t.held, b = append(t.held, b[:len(said)]...), b[len(said):]
			if err := t.look(said); err != nil {
				return err
			}
		} else {
			rest, whole, err := t.frame.begin(b)
			if err != nil {
				return err
			}
			t.held, b = append(t.held, b[:len(b)-len(rest)]...), rest
			if !whole {
				break
			}
		}
		t.inside = t.frame.left > 0
		t.pass()
	}
	if len(t.held) > maxFrames {
		return errPacked
	}
	return nil
}

// look looks for a value that ends in the bytes so far.
func (t *tripwire) look(said []byte) error {
	e := t.known()
	if e == nil {
		return nil
	}
	tail := &t.message
	if t.frame.control {
		tail = &t.control
	}
	*tail = append(*tail, said...)
	if _, _, which := e.values.find(*tail); which >= 0 {
		clear(*tail)
		return errEcho
	}
	if !t.frame.control {
		_, t.begun = e.values.begun(*tail)
	}
	if over := len(*tail) - e.values.span(); over > 0 {
		*tail = append((*tail)[:0], (*tail)[over:]...)
	}
	return nil
}

// pass passes the new bytes, except the possible beginning of a value that is still
// incomplete.
func (t *tripwire) pass() {
	keep := t.begun
	switch {
	case t.frame.control:
		if keep > 0 || t.inside {
			return
		}
	case t.frame.last && !t.inside:
		keep = 0
	case keep > t.frame.at: // it began in another frame
		return
	}
	n := max(0, len(t.held)-keep) // the first characters may have passed
	t.ready = append(t.ready, t.held[:n]...)
	t.held = append(t.held[:0], t.held[n:]...)
}
