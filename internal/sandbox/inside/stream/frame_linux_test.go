package stream

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzFrames: whatever arrives, a frame is as long as its kind may have it, and
// is written as it was read.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(frame{kindData, 7, []byte("hello")}.encode())
	f.Add(frame{kindCredit, 1, number(9)}.encode())
	f.Add(frame{kindControl, 0, encodeControl([]byte(`{"Do":{"ID":1}}`), []reference{{readable, 1}, {tty, 2}})}.encode())
	f.Add([]byte{kindData, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{kindDial, 0, 0, 0, 1, 0, 0, 0, 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			before := len(b) - r.Len()
			got, err := readFrame(r)
			if err != nil {
				if errors.Is(err, io.EOF) && before != len(b) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("a cut frame is an end: %v", err)
				}
				return
			}
			if got.kind == 0 || got.kind >= kindLast || len(got.body) > limit(got.kind) {
				t.Fatalf("kind %d with %d bytes", got.kind, len(got.body))
			}
			if !bytes.Equal(got.encode(), b[before:len(b)-r.Len()]) {
				t.Error("written anew it is another frame")
			}
			if got.kind == kindControl {
				readControl(t, got.body)
			}
		}
	})
}

// readControl reads a message's descriptors.
func readControl(t *testing.T, body []byte) {
	message, refs, err := decodeControl(body)
	if err == nil && !bytes.Equal(encodeControl(message, refs), body) {
		t.Error("written anew it is another message")
	}
	look(message)
}

// TestFramesThatAreNone are refused before anything is read for them.
func TestFramesThatAreNone(t *testing.T) {
	for name, b := range map[string][]byte{
		"no kind":                {0, 0, 0, 0, 0, 0, 0, 0, 0},
		"an unknown kind":        {kindLast, 0, 0, 0, 0, 0, 0, 0, 0},
		"4 GiB of data":          {kindData, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff},
		"data beyond a chunk":    {kindData, 0, 0, 0, 1, 0, 0, 0x80, 1},
		"an end with a body":     {kindEnd, 0, 0, 0, 1, 0, 0, 0, 1, 0},
		"credit without a value": {kindCredit, 0, 0, 0, 1, 0, 0, 0, 0},
	} {
		if _, err := readFrame(bytes.NewReader(append(b, make([]byte, chunk+1)...))); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
