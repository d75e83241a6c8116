package attach

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is how many bytes the content of a frame has at most.
const MaxFrame = 1 << 20

// A kind is the first byte of a frame.
type kind byte

const (
	helloFrame  kind = 'H'
	inputFrame  kind = 'I'
	resizeFrame kind = 'R'
	signalFrame kind = 'G'
	screenFrame kind = 'S' // from a viewer: a request for one
	outputFrame kind = 'O'
	stateFrame  kind = 'T'
	noticeFrame kind = 'N'
	exitFrame   kind = 'E'
	refuseFrame kind = 'X'
)

// frameHead is kind and length.
const frameHead = 5

// hello is a viewer's first message.
type hello struct {
	ReadOnly bool   `json:"readOnly"`
	Key      string `json:"key,omitempty"` // at the socket, the contents of keyName
}

// A Size is that of a window, in characters. A zero Size is unknown.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// A Status is what viewers are told of the session whenever it changes.
type Status struct {
	Session string `json:"session"` // "" before it has one
	Running bool   `json:"running"` // the guest's command has been started
	Viewers int    `json:"viewers"`
	Size    Size   `json:"size"` // of the guest's window
}

// An Exit says how the session ended.
type Exit struct {
	Code int `json:"code"` // of bawn run
}

// appendFrame appends a frame to buf.
func appendFrame(buf []byte, k kind, content []byte) []byte {
	buf = append(buf, byte(k))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(content)))
	return append(buf, content...)
}

// appendJSON appends a frame whose content is v, which always can be written.
func appendJSON(buf []byte, k kind, v any) []byte {
	content, _ := json.Marshal(v)
	return appendFrame(buf, k, content)
}

// readFrame reads one frame. The content is valid until the next call with the
// same buffer. io.EOF is returned between frames only.
func readFrame(r io.Reader, buf *[]byte) (kind, []byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("a frame was cut off: %w", err)
		}
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxFrame {
		return 0, nil, fmt.Errorf("a frame has %d bytes; want at most %d", n, MaxFrame)
	}
	content, err := grow(r, (*buf)[:0], int(n))
	*buf = content
	return kind(head[0]), content, err
}

// grow reads n bytes, without having room for all of them before they come.
func grow(r io.Reader, buf []byte, n int) ([]byte, error) {
	const step = 64 << 10
	for len(buf) < n {
		at := len(buf)
		buf = append(buf, make([]byte, min(step, n-at))...)
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return nil, fmt.Errorf("a frame was cut off: %w", err)
		}
	}
	return buf, nil
}
