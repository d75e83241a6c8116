//go:build linux || darwin

package terminal

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// onlcr is what a terminal does to output on its way (termios(3)).
func onlcr(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }

// chunked runs b through strip in two parts and releases what was held.
func chunked(b []byte, cut int) []byte {
	var l newlines
	out := append(l.strip(b[:cut]), l.strip(b[cut:])...)
	return l.keepAll(out)
}

func (l *newlines) keepAll(out []byte) []byte {
	if l.held {
		return append(out, l.release()...)
	}
	return out
}

func TestStripUndoesONLCR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.SampledFrom([]byte("\r\na\x00"))).Draw(t, "output")
		cut := rapid.IntRange(0, len(onlcr(b))).Draw(t, "cut")
		if got := chunked(onlcr(b), cut); !bytes.Equal(got, b) {
			t.Errorf("%q cut at %d came out as %q", b, cut, got)
		}
	})
}

func TestKeepLosesNothing(t *testing.T) {
	l := newlines{held: true}
	if got := string(l.keep([]byte("x\r\n"))); got != "\rx\r\n" || l.held {
		t.Errorf("got %q, held %v", got, l.held)
	}
	b := []byte("x\r\n")
	if got := l.keep(b); &got[0] != &b[0] {
		t.Error("nothing was held, and still the bytes were copied")
	}
}

func FuzzStrip(f *testing.F) {
	f.Add([]byte("a\r\n\r\r\nb\n"), 2)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		sent := onlcr(b)
		if cut < 0 || cut > len(sent) {
			return
		}
		if got := chunked(sent, cut); !bytes.Equal(got, b) {
			t.Errorf("%q cut at %d came out as %q", b, cut, got)
		}
	})
}
