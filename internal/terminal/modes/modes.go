// Package modes follows what a program makes of its terminal: it cuts output into
// text and control sequences, and remembers the modes that are in force.
package modes

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Modes is what a program has set in its terminal and has not taken back. The
// zero value is a terminal as it was found.
type Modes struct {
	private  map[int]bool // DEC private modes that are not as they were
	keyboard []string     // the stack of kitty's keyboard flags
	otherKey string       // xterm's modifyOtherKeys
	keypad   bool         // DECKPAM
	cursor   string       // DECSCUSR
	region   string       // DECSTBM
	charset  bool         // G0 is not ASCII
	title    []byte       // the last OSC 0 or 2
}

// followed are the private modes that are taken notice of, and whether a
// terminal has them on (xterm, ctlseqs; kitty, contour). Some are left out: a
// program must not be able to switch off a mode that a terminal can't do without
// (2, 1046), disguised as the end of what it has switched on.
var followed = map[int]bool{
	1: false, 5: false, 6: false, 7: true, 9: false, 25: true, 45: false, 47: false, 66: false, 69: false,
	1000: false, 1001: false, 1002: false, 1003: false, 1004: false, 1005: false, 1006: false, 1007: false, 1015: false, 1016: false,
	1035: true, 1036: true, 1039: false, 1047: false, 1049: false,
	2004: false, 2026: false, 2027: false, 2031: false, 2048: false, 9001: false,
}

// alternate are the modes that switch to the second screen.
var alternate = []int{47, 1047, 1049}

// maxTitle and maxKept bound what is remembered.
const (
	maxTitle = 512
	maxKept  = 64
)

// See takes notice of a sequence, as Split hands it on.
func (m *Modes) See(seq []byte) {
	switch {
	case seq[1] == '[':
		if c, ok := parseCSI(seq); ok {
			m.seeCSI(c)
		}
	case seq[1] == 'c': // RIS
		*m = Modes{}
	case seq[1] == '=':
		m.keypad = true
	case seq[1] == '>':
		m.keypad = false
	case seq[1] == '(' && len(seq) == 3:
		m.charset = seq[2] != 'B'
	case seq[1] == ']' && len(seq) <= maxTitle && (bytes.HasPrefix(seq[2:], []byte("0;")) || bytes.HasPrefix(seq[2:], []byte("2;"))):
		m.title = bytes.Clone(seq)
	}
}

func (m *Modes) seeCSI(c csi) {
	switch {
	case c.private == '?' && (c.final == 'h' || c.final == 'l') && c.between == "":
		for p := range strings.SplitSeq(c.params, ";") {
			if n, err := strconv.Atoi(p); err == nil {
				m.set(n, c.final == 'h')
			}
		}
	case c.private == '>' && c.final == 'u':
		if len(m.keyboard) < maxKept {
			m.keyboard = append(m.keyboard, c.params)
		}
	case c.private == '<' && c.final == 'u':
		m.keyboard = m.keyboard[:max(len(m.keyboard)-max(c.first(1), 1), 0)]
	case c.private == '>' && c.final == 'm' && c.first(0) == 4:
		m.otherKey = strings.TrimPrefix(strings.TrimPrefix(c.params, "4"), ";")
	case c.private == 0 && c.final == 'q' && c.between == " ":
		m.cursor = strings.TrimLeft(c.params, "0")
	case c.private == 0 && c.final == 'r' && c.between == "":
		m.region = c.params
	case c.final == 'p' && c.between == "!": // DECSTR
		alt := m.Alternate()
		*m = Modes{title: m.title}
		if alt != 0 {
			m.set(alt, true)
		}
	}
}

func (m *Modes) set(n int, on bool) {
	usual, ok := followed[n]
	if !ok {
		return
	}
	if slices.Contains(alternate, n) {
		for _, a := range alternate {
			delete(m.private, a)
		}
	}
	if on == usual {
		delete(m.private, n)
		return
	}
	if m.private == nil {
		m.private = map[int]bool{}
	}
	m.private[n] = on
}

// Alternate returns the mode by which the second screen is on, or 0.
func (m *Modes) Alternate() int {
	for _, n := range alternate {
		if m.private[n] {
			return n
		}
	}
	return 0
}

// Draws reports whether the program draws its window itself, and so does it
// anew where the window changes.
func (m *Modes) Draws() bool { return m.Alternate() != 0 || m.is(25, false) }

func (m *Modes) is(n int, on bool) bool {
	v, ok := m.private[n]
	return ok && v == on
}

// Again returns what brings another terminal into these modes.
func (m *Modes) Again() []byte {
	var b bytes.Buffer
	b.Write(m.title)
	for _, n := range slices.Sorted(maps.Keys(m.private)) {
		writeMode(&b, n, m.private[n])
	}
	m.others(&b)
	if m.region != "" {
		fmt.Fprintf(&b, "\x1b[%sr", m.region)
	}
	return b.Bytes()
}

// others writes what sets the modes that are no private ones.
func (m *Modes) others(b *bytes.Buffer) {
	for _, flags := range m.keyboard {
		fmt.Fprintf(b, "\x1b[>%su", flags)
	}
	if m.otherKey != "" {
		fmt.Fprintf(b, "\x1b[>4;%sm", m.otherKey)
	}
	if m.keypad {
		b.WriteString("\x1b=")
	}
	if m.cursor != "" {
		fmt.Fprintf(b, "\x1b[%s q", m.cursor)
	}
	if m.charset {
		b.WriteString("\x1b(0")
	}
}

// Back returns what brings the terminal itself into these modes again after
// Away. The cursor stays.
func (m *Modes) Back() []byte {
	var b bytes.Buffer
	if m.region != "" {
		fmt.Fprintf(&b, "\x1b7\x1b[%sr\x1b8", m.region)
	}
	alt := m.Alternate()
	for _, n := range slices.Sorted(maps.Keys(m.private)) {
		if n != alt {
			writeMode(&b, n, m.private[n])
		}
	}
	m.others(&b)
	return b.Bytes()
}

// Undo returns what makes a terminal that was brought into these modes as it
// was before.
func (m *Modes) Undo() []byte {
	b := bytes.NewBuffer(m.Away())
	if alt := m.Alternate(); alt != 0 {
		writeMode(b, alt, false)
	}
	return b.Bytes()
}

// Away is Undo, but stays on the second screen.
func (m *Modes) Away() []byte {
	var b bytes.Buffer
	if m.region != "" {
		b.WriteString("\x1b7\x1b[r\x1b8") // it moves the cursor
	}
	if m.charset {
		b.WriteString("\x1b(B")
	}
	if len(m.keyboard) > 0 {
		fmt.Fprintf(&b, "\x1b[<%du", len(m.keyboard))
	}
	if m.otherKey != "" {
		b.WriteString("\x1b[>4m")
	}
	if m.keypad {
		b.WriteString("\x1b>")
	}
	if m.cursor != "" {
		b.WriteString("\x1b[0 q")
	}
	alt := m.Alternate()
	for _, n := range slices.Sorted(maps.Keys(m.private)) {
		if n != alt {
			writeMode(&b, n, !m.private[n])
		}
	}
	b.WriteString("\x1b[0m")
	return b.Bytes()
}

func writeMode(b *bytes.Buffer, n int, on bool) {
	final := 'l'
	if on {
		final = 'h'
	}
	fmt.Fprintf(b, "\x1b[?%d%c", n, final)
}
