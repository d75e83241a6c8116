package mitm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// frames writes messages of a host: each text is a frame, and "+" before it says that the
// message goes on. "~" is a ping, "*" masks.
func frames(texts ...string) []byte {
	var out []byte
	first := true
	for _, text := range texts {
		kind := text[0]
		body := []byte(text[1:])
		head := byte(0)
		switch {
		case kind == '~':
			head = 0x89
		case first:
			head = 0x01
		}
		if kind != '+' {
			head |= 0x80
		}
		if kind != '~' {
			first = kind != '+'
		}
		out = append(out, head)
		mask := byte(0)
		if kind == '*' {
			mask = 0x80
		}
		if len(body) < 126 {
			out = append(out, mask|byte(len(body)))
		} else {
			out = binary.BigEndian.AppendUint16(append(out, mask|126), uint16(len(body)))
		}
		if mask != 0 {
			out = append(out, 1, 2, 3, 4)
			for i := range body {
				body[i] ^= byte(1 + i%4)
			}
		}
		out = append(out, body...)
	}
	return out
}

type pipe struct{ io.Reader }

func (pipe) Write(p []byte) (int, error) { return len(p), nil }
func (pipe) Close() error                { return nil }

// TestFrames: a value ends a WebSocket also where it comes in several frames, and nothing
// of it has passed then; other messages pass byte for byte.
func TestFrames(t *testing.T) {
	e := newEcho([]use{{value: []byte(value)}})
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name   string
		frames []byte
		leak   bool
	}{
		{"one message", frames(".hello", "."+long, "."), false},
		{"fragments", frames("+hel", "+", ".lo"), false},
		{"a ping within", frames("+hel", "~ping", ".lo"), false},
		{"the beginning of a value alone", frames("."+value[:9], ".then"), false},
		{"the value", frames("." + value), true},
		{"in a long frame", frames("." + long + value + long), true},
		{"in two frames", frames("+"+value[:9], "."+value[9:]), true},
		{"in a frame for each byte", frames(strings.Split("+"+strings.Join(strings.Split(value, ""), " +"), " ")...), true},
		{"around a ping", frames("+"+value[:9], "~ping", "."+value[9:]), true},
		{"around an empty frame", frames("+"+value[:9], "+", "."+value[9:]), true},
		{"masked", frames("*" + value), true},
		{"in a ping", frames("~" + value), true},
		{"escaped, in two frames", frames("+"+quoted(value)[:9], "."+quoted(value)[9:]), true},
		{"packed", append([]byte{0xc1}, frames(".hello")[1:]...), true},
	} {
		for _, size := range []int{1, 3, 1 << 20} {
			w := &tripwire{ReadWriteCloser: pipe{pieces{bytes.NewReader(tt.frames), size}}, known: func() *echo { return e }}
			got, err := io.ReadAll(w)
			if tt.leak && (err == nil || bytes.Contains(got, []byte(value[:9])) || bytes.Contains(got, []byte(value[9:]))) {
				t.Errorf("%s in pieces of %d: passed %q, %v", tt.name, size, got, err)
			}
			if !tt.leak && (err != nil || !bytes.Equal(got, tt.frames)) {
				t.Errorf("control: %s in pieces of %d: passed %q, %v; want %q", tt.name, size, got, err, tt.frames)
			}
		}
	}
}

// TestFramesDoNotWait: a message whose end resembles a value's beginning is passed on at
// once, for nothing may follow it.
func TestFramesDoNotWait(t *testing.T) {
	e := newEcho([]use{{value: []byte(value)}})
	in, out := io.Pipe()
	w := &tripwire{ReadWriteCloser: pipe{in}, known: func() *echo { return e }}
	sent := frames("." + value[:9])
	go out.Write(sent)
	got := make([]byte, len(sent))
	within(t, "the message", func() { io.ReadFull(w, got) })
	if !bytes.Equal(got, sent) {
		t.Errorf("got %q", got)
	}
}

// TestUnaskedExtension: frames that a host packs although nobody asked are not passed on.
func TestUnaskedExtension(t *testing.T) {
	for _, extension := range []string{"", "permessage-deflate"} {
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, switching)
			if extension != "" {
				fmt.Fprintf(conn, "Sec-WebSocket-Extensions: %s\r\n", extension)
			}
			fmt.Fprintf(conn, "\r\n%s", frames(".hello"))
		}), bind(bawn.Bearer, ""))
		got := r.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + socketKey + "Authorization: Bearer " + placeholder + "\r\n\r\n")
		if want := map[string]string{"": "101", "permessage-deflate": "502"}[extension]; statusCodes(got) != want || strings.Contains(got, "hello") != (want == "101") {
			t.Errorf("%q: %q; want %s", extension, got, want)
		}
	}
}

// FuzzFrames: whatever a host sends, what passes is how it begins.
func FuzzFrames(f *testing.F) {
	f.Add(frames("+"+value[:9], "~ping", "."+value[9:]), 3)
	f.Add([]byte{0x81, 0xff, 1, 2, 3}, 1)
	e := newEcho([]use{{value: []byte(value)}})
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		w := &tripwire{ReadWriteCloser: pipe{pieces{bytes.NewReader(sent), max(size, 1)}}, known: func() *echo { return e }}
		got, err := io.ReadAll(w)
		if !bytes.HasPrefix(sent, got) || err == nil && len(got) != len(sent) {
			t.Errorf("%q: passed %q, %v", sent, got, err)
		}
	})
}
