package asking

import (
	"bytes"
	"slices"
	"time"

	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// apart is how long after a key Enter counts at the earliest. No finger is
// faster, and pasted text comes at once.
const apart = 15 * time.Millisecond

// settle is how long no key comes before a paste is over. Without brackets, pasted text
// comes in pieces on a slow line, and the last may be a key or Enter by itself.
const settle = 500 * time.Millisecond

// The sequences around pasted text (xterm's ctlseqs, bracketed paste mode).
var pasteBegins, pasteEnds = []byte("\x1b[200~"), []byte("\x1b[201~")

// A typed reads keys, and knows of a line whether a human has typed it. Where
// the terminal supports brackets, pasted text is recognised by them and left
// out. Besides, Enter has to come by itself.
type typed struct {
	from terminal.Conversation
	now  func() time.Time
	last time.Time // when a key came
	part []byte    // the begin of a bracket
	in   bool      // between brackets
	out  []byte    // keys that nobody has taken yet
	not  bool      // this line was not typed
	rush bool      // what comes soon is the rest of what was pasted
	buf  [4096]byte
}

// Read implements io.Reader. A line in which something was pasted ends at once.
func (t *typed) Read(b []byte) (int, error) {
	for len(t.out) == 0 {
		n, err := t.from.Read(t.buf[:])
		if err != nil {
			return 0, err
		}
		t.take(t.buf[:n])
	}
	n := copy(b, t.out)
	t.out = t.out[n:]
	return n, nil
}

// take interprets the bytes of one read.
func (t *typed) take(b []byte) {
	now := t.now()
	early, rest := now.Sub(t.last) < apart, t.rush && now.Sub(t.last) < settle
	t.last = now
	keys, pasted := t.unbracket(b)
	pasted = pasted || reported(keys)
	alone := len(bytes.Trim(keys, "\r\n")) == 0
	entered := bytes.ContainsAny(keys, "\r\n")
	t.rush = rest || entered && (early || !alone)
	switch {
	case pasted, t.rush:
		t.not = true
		keys = []byte{'\r'}
	case entered:
		keys = []byte{'\r'}
	}
	if !t.in {
		t.out = keys
	}
}

// reported reports whether a terminal's own answer is among the keys, such as the title of
// its window, which a guest chooses and can ask for (ECMA-48, 5.6: control strings). Half
// of one would also take the next key for its end.
func reported(keys []byte) bool {
	for i, c := range keys {
		if c == modes.Escape && i+1 < len(keys) && bytes.IndexByte([]byte(`]P_^X\`), keys[i+1]) >= 0 {
			return true
		}
	}
	return false
}

// unbracket returns b without pasted text, and whether there was any.
func (t *typed) unbracket(b []byte) (keys []byte, pasted bool) {
	b = append(t.part, b...)
	for pasted = t.in; ; pasted = true {
		bracket := pasteBegins
		if t.in {
			bracket = pasteEnds
		}
		i := bytes.Index(b, bracket)
		whole := i
		if i < 0 {
			whole = len(b) - begun(b, bracket)
		}
		if !t.in {
			keys = append(keys, b[:whole]...)
		}
		if i < 0 {
			t.part = slices.Clone(b[whole:])
			return keys, pasted
		}
		b, t.in = b[i+len(bracket):], !t.in
	}
}

// begun is how many bytes at the end of b begin the bracket.
func begun(b, bracket []byte) int {
	for n := min(len(b), len(bracket)-1); n > 0; n-- {
		if bytes.HasSuffix(b, bracket[:n]) {
			return n
		}
	}
	return 0
}

func (t *typed) Write(b []byte) (int, error) { return t.from.Write(b) }

// pasted reports whether the line that was just read was not typed, and begins
// the next.
func (t *typed) pasted() bool {
	not := t.not
	t.not = false
	return not
}
