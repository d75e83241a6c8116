package modes

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A Label is the title of a terminal that shows a guest: a mark of Bawn's, and after it
// the guest's name or the title that the guest has set. It is a sign and no proof: a
// guest can set titles in forms that only some terminals understand. The zero Label
// has no mark and writes nothing.
type Label struct {
	Mark, Name string // no control characters
	on         bool
	guest      []byte // its last title
	due        []byte // the sequences that set the title anew
}

// Titled reports whether a terminal has a title that can be set, by TERM and by the
// multiplexer's variable: GNU screen would show it as a message.
func Titled(getenv func(string) string) bool {
	name := getenv("TERM")
	if strings.HasPrefix(name, "screen") {
		return getenv("TMUX") != ""
	}
	for _, known := range []string{"xterm", "tmux", "rxvt", "alacritty", "foot", "wezterm", "ghostty", "kitty", "konsole", "vte", "gnome", "st-", "putty", "mintty", "contour"} {
		if strings.HasPrefix(name, known) {
			return true
		}
	}
	return false
}

// Begin returns what keeps the terminal's title on its stack and sets ours. It returns
// nothing where that has been done.
func (l *Label) Begin() []byte {
	if l.Mark == "" || l.on {
		return nil
	}
	l.on, l.due = true, nil
	return append([]byte("\x1b[22;0t"), l.title('0', l.guest)...)
}

// End returns what puts the title back. A terminal without a stack is left with none.
func (l *Label) End() []byte {
	if !l.on {
		return nil
	}
	l.on = false
	return []byte("\x1b]0;\a\x1b[23;0t")
}

// See follows one sequence of the guest's.
func (l *Label) See(seq []byte) {
	switch kind, text := titleOf(seq); {
	case kind != 0:
		if kind != '1' {
			l.guest = bytes.Clone(text)
		}
		l.due = append(l.due, l.title(kind, text)...)
	case movesTitles(seq):
		l.due = append(l.due, l.title('0', l.guest)...)
	}
	if len(l.due) > MaxSequence {
		l.due = l.due[:0]
	}
}

// After returns what follows a piece of the guest's output, of which a sequence of so
// many bytes is not complete. In the middle of anything it returns nothing yet.
func (l *Label) After(output []byte, pending int) []byte {
	if !l.on || len(l.due) == 0 || pending > 0 || endsWithin(output) {
		return nil
	}
	due := l.due
	l.due = nil
	return due
}

// title sets the title of that kind.
func (l *Label) title(kind byte, text []byte) []byte {
	words := string(text)
	switch {
	case strings.HasPrefix(words, l.Mark): // of a session in this one
	case words == "":
		words = l.Mark + l.Name
	default:
		words = l.Mark + words
	}
	return []byte("\x1b]" + string(kind) + ";" + words + "\a")
}

// titleOf returns the kind (0 title and icon, 1 icon, 2 title) and the text of a
// sequence that sets a title. The kind of any other sequence is 0, not '0'.
func titleOf(seq []byte) (kind byte, text []byte) {
	if len(seq) < 3 || seq[1] != ']' {
		return 0, nil
	}
	body := bytes.TrimSuffix(bytes.TrimSuffix(seq[2:], []byte("\x1b\\")), []byte("\a"))
	switch c := seq[2]; {
	case c == 'l' || c == 'L': // Sun's
		kind, text = map[byte]byte{'l': '2', 'L': '1'}[c], body[1:]
	case c >= '0' && c <= '2' && len(body) > 1 && body[1] == ';':
		kind, text = c, body[2:]
	}
	if len(text) > maxTitle {
		text = nil
	}
	return kind, text
}

// movesTitles reports whether a sequence resets the title, or exchanges it with the
// terminal's stack of titles.
func movesTitles(seq []byte) bool {
	if seq[1] == 'c' {
		return true
	}
	c, ok := parseCSI(seq)
	return ok && c.private == 0 && c.final == 't' && c.between == "" && c.first(0) == 23
}

// endsWithin reports whether output ends in the middle of a character.
func endsWithin(output []byte) bool {
	tail := output[max(len(output)-utf8.UTFMax+1, 0):]
	for i := range tail {
		if utf8.RuneStart(tail[i]) && !utf8.FullRune(tail[i:]) {
			return true
		}
	}
	return false
}
