package head

import (
	"bytes"
	"strings"
	"testing"
)

// TestEnd: the end is the same whatever was seen before, and what ends earlier
// for other servers ends there.
func TestEnd(t *testing.T) {
	for raw, want := range map[string]int{
		"": -1, "\n": -1, "\r\n": -1, "a\n": -1, "a\r\n": -1, "a\r\n\r": -1, "a\n\r": -1, "a\r\n\rb\n": -1,
		"\n\n": 2, "\r\n\r\n": 4, "a\n\n": 3, "a\n\r\nb": 4, "a\r\n\nb": 4, "a\r\n\r\nb": 5, "a\nb\r\n\r\n\r\n": 7,
	} {
		for seen := range len(raw) {
			if early := End([]byte(raw[:seen]), 0); early >= 0 {
				break
			}
			if got := End([]byte(raw), seen); got != want {
				t.Errorf("End(%q, %d) = %d; want %d", raw, seen, got, want)
			}
		}
	}
}

func parse(t *testing.T, raw string) Head {
	t.Helper()
	h, err := Parse([]byte(raw + "\r\n\r\n"))
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return h
}

func TestParse(t *testing.T) {
	h := parse(t, "GET /a?b HTTP/1.0\r\nA: 1\r\nb:\r\na: \t2 \t")
	if h.Method != "GET" || h.Target != "/a?b" || h.Minor != 0 || h.Value("a") != "1, 2" || h.Value("B") != "" || len(h.Values("B")) != 1 || len(h.Values("c")) != 0 {
		t.Errorf("got %+v", h)
	}
	for _, raw := range []string{
		"", "\r\n", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "\r\n\r\n", "GET / HTTP/1.1\r\n\r\nA: b\r\n\r\n", "GET / HTTP/1.1\n\n", "GET / HTTP/1.1\r\nA: b\n\r\n",
	} {
		if h, err := Parse([]byte(raw)); err == nil {
			t.Errorf("Parse(%q) = %+v; want an error", raw, h)
		}
	}
}

func TestPath(t *testing.T) {
	for line, want := range map[string]string{
		"GET /a?b": "/a?b", "GET http://a.example": "/", "GET http://a.example?b": "/?b", "GET HTTP://a.example:80/a//b?c/d": "/a//b?c/d",
		"OPTIONS *": "*", "CONNECT a.example:443": "",
	} {
		if got := parse(t, line+" HTTP/1.1").Path(); got != want {
			t.Errorf("%q: path %q; want %q", line, got, want)
		}
	}
}

func TestBody(t *testing.T) {
	for _, tt := range []struct {
		fields  string
		length  int64
		chunked bool
		ok      bool
	}{
		{"", 0, false, true},
		{"\r\nContent-Length: 0", 0, false, true},
		{"\r\nContent-Length: 9223372036854775807", 1<<63 - 1, false, true},
		{"\r\nTransfer-Encoding: Chunked", 0, true, true},
		{"\r\nContent-Length: 9223372036854775808", 0, false, false},
		{"\r\nContent-Length: -1", 0, false, false},
		{"\r\nContent-Length: 0x1", 0, false, false},
		{"\r\nContent-Length: 1_0", 0, false, false},
		{"\r\nContent-Length: 5\r\nContent-Length: 5", 0, false, false},
		{"\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 0, false, false},
		{"\r\nTransfer-Encoding: gzip, chunked", 0, false, false},
		{"\r\nTransfer-Encoding: identity", 0, false, false},
		{"\r\nTransfer-Encoding: ", 0, false, false},
		{"\r\ncontent-length: 5\r\ntransfer-encoding: chunked", 0, false, false},
	} {
		length, chunked, err := parse(t, "POST / HTTP/1.1"+tt.fields).Body()
		if length != tt.length || chunked != tt.chunked || (err == nil) != tt.ok {
			t.Errorf("%q: %d, %t, %v; want %+v", tt.fields, length, chunked, err, tt)
		}
	}
}

// FuzzParse: a head that is accepted is what it was made of, to the byte but
// for the blanks around values, and no longer than End says.
func FuzzParse(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"))
	f.Add([]byte("POST http://a.example/ HTTP/1.0\r\nA:\r\nB: \t c \r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := Parse(raw)
		if err != nil {
			return
		}
		if end := End(raw, 0); end != len(raw) {
			t.Fatalf("%q ends at %d", raw, end)
		}
		if bytes.Count(raw, []byte("\n")) != len(h.Fields)+2 || bytes.Count(raw, []byte("\r")) != len(h.Fields)+2 {
			t.Fatalf("%q has other lines than %+v", raw, h)
		}
		rest := string(raw)
		for _, part := range append([]string{h.Method + " " + h.Target + " HTTP/1."}, fields(h)...) {
			i := strings.Index(rest, part)
			if i < 0 || strings.Trim(rest[:i], "01\r\n\t ") != "" {
				t.Fatalf("%q: %q stands elsewhere", raw, part)
			}
			rest = rest[i+len(part):]
		}
	})
}

func fields(h Head) []string {
	var out []string
	for _, f := range h.Fields {
		out = append(out, f.Name+":", f.Value)
	}
	return out
}
