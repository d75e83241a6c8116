package ipc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/bawn-dev/bawn/internal/strictjson"
)

const header = 4 // bytes of a frame's length

// Append appends the frame of msg to buf. It refuses a message that is not
// Valid, and one of more than limit bytes.
func Append(buf []byte, msg any, limit int) ([]byte, error) {
	if err := valid(msg); err != nil {
		return nil, err
	}
	body, err := json.Marshal(msg)
	if err != nil {
		return nil, err
	}
	if len(body) > limit {
		return nil, fmt.Errorf("a message of %d bytes is too long; want at most %d", len(body), limit)
	}
	return append(binary.BigEndian.AppendUint32(buf, uint32(len(body))), body...), nil
}

// Read reads the next message of a stream that carries no descriptors into msg.
// It returns io.EOF where the stream ends between two messages. After another
// error the stream is of no more use.
func Read(r io.Reader, msg any, limit int) error {
	var in bytes.Buffer
	if err := readFrame(r, &in, limit); err != nil {
		return err
	}
	return decode(in.Bytes(), msg)
}

// readFrame reads the content of one frame into in. It asks r for no byte after
// the frame, and has room for the content only as it arrives.
func readFrame(r io.Reader, in *bytes.Buffer, limit int) error {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(limit) {
		return fmt.Errorf("a message of %d bytes is too long; want at most %d", n, limit)
	}
	in.Reset()
	got, err := in.ReadFrom(io.LimitReader(r, n))
	if err == nil && got < n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// decode reads exactly one message.
func decode(body []byte, msg any) error {
	if err := strictjson.Decode(body, msg); err != nil {
		return fmt.Errorf("the message can't be read: %w", err)
	}
	return valid(msg)
}

// valid asks a message that knows whether it says anything.
func valid(msg any) error {
	if v, ok := msg.(interface{ Valid() error }); ok {
		return v.Valid()
	}
	return nil
}
