package attach

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFrames(t *testing.T) {
	b := appendFrame(nil, inputFrame, []byte("ls\n"))
	b = appendJSON(b, resizeFrame, Size{24, 80})
	b = appendFrame(b, screenFrame, nil)
	r := bytes.NewReader(b)
	var buf []byte
	for _, want := range []string{"Ils\n", `R{"rows":24,"cols":80}`, "S"} {
		k, content, err := readFrame(r, &buf)
		if got := string(k) + string(content); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if _, _, err := readFrame(r, &buf); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestBrokenFrames(t *testing.T) {
	for _, in := range []string{"I", "I\x00\x00\x00", "I\x00\x00\x00\x02a", "I\x00\x10\x00\x01", "I\xff\xff\xff\xff"} {
		var buf []byte
		if k, c, err := readFrame(bytes.NewReader([]byte(in)), &buf); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%q is frame %q %q, %v", in, k, c, err)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("I\x00\x00\x00\x02ab"))
	f.Add([]byte("H\x00\x00\x00\x02{}T\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		var buf, again []byte
		for {
			k, content, err := readFrame(r, &buf)
			if err != nil {
				break
			}
			again = appendFrame(again, k, content)
			_, _ = event(k, content)
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("%q was read as %q", b, again)
		}
	})
}
