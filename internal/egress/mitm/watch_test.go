package mitm

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestWatcher finds every value however the stream is cut, in its forms, and
// nothing in other text.
func TestWatcher(t *testing.T) {
	set := NewWatchSet([]Watched{{"A", []byte("first-value-0123")}, {"B", []byte("sec/ond+value=99")}, {"short", []byte("abc")}})
	for text, want := range map[string][]string{
		"first-value-0123": {"A"}, "xxfirst-value-0123sec/ond+value=99yy": {"A", "B"}, url.QueryEscape("sec/ond+value=99"): {"B"},
		base64.StdEncoding.EncodeToString([]byte("first-value-0123")): {"A"}, base64.URLEncoding.EncodeToString([]byte("xsec/ond+value=99y")): {"B"},
		"first-value-012": nil, "abc": nil, "": nil, strings.Repeat("first", 1000): nil,
	} {
		for _, size := range []int{1, 3, 7, 1000} {
			w := watcher{set: set}
			var got []string
			for piece := range slices.Chunk([]byte(text), size) {
				for _, name := range w.feed(piece) {
					if !slices.Contains(got, name) {
						got = append(got, name)
					}
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%.40q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
	if NewWatchSet(nil) != nil || NewWatchSet([]Watched{{"short", []byte("abc")}}) != nil {
		t.Error("a set of nothing watches")
	}
}

// FuzzWatcher: a stream in two pieces has what it has as a whole.
func FuzzWatcher(f *testing.F) {
	f.Add([]byte("xx%66irst-value-0123"), 5)
	set := NewWatchSet([]Watched{{"A", []byte("first-value-0123")}})
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = max(0, min(at, len(text)))
		w := watcher{set: set}
		found := len(w.feed(text[:at]))+len(w.feed(text[at:])) > 0
		if bytes.Contains(text, []byte("first-value-0123")) && !found {
			t.Errorf("%q cut at %d: not found", text, at)
		}
	})
}

func BenchmarkWatcher(b *testing.B) {
	var values []Watched
	for i := range 20 {
		values = append(values, Watched{"v", []byte(strings.Repeat(string(rune('a'+i)), 8) + "0123456789")})
	}
	set, text := NewWatchSet(values), []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("some text of a body, 0123456789."), 1024)))
	b.SetBytes(int64(len(text)))
	w := watcher{set: set}
	for b.Loop() {
		w.feed(text)
	}
}
