package mcpserver

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/redact"
)

// printable is text without hidden characters: invisible ones are written as
// \x1b or \u202e, so that neither a terminal nor a human reader is misled. Line
// breaks and tabs stay.
func printable(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		body, end := strings.CutSuffix(line, "\n")
		body = strings.TrimSuffix(body, "\r")
		for i, cell := range strings.Split(body, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(redact.Visible(cell))
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// bounded is at most MaxResult bytes of a text, its begin and its end.
func bounded(s string) string {
	if len(s) <= MaxResult {
		return s
	}
	head, tail := MaxResult/2, len(s)-MaxResult/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[bawn: %d bytes are left out here]\n%s", s[:head], tail-head, s[tail:])
}

// binary reports whether content is no text.
func binary(content []byte) bool {
	head := content[:min(len(content), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for n := 0; n < utf8.UTFMax && len(content) > len(head) && !utf8.Valid(head); n++ {
		head = head[:len(head)-1] // a character may have been cut
	}
	return !utf8.Valid(head)
}

// A spool keeps the begin and the end of what is written to it.
type spool struct {
	head, tail []byte
	cut        int64
}

const spoolHalf = MaxResult/2 - 200

// Write never fails.
func (s *spool) Write(b []byte) (int, error) {
	n := len(b)
	if room := spoolHalf - len(s.head); room > 0 {
		take := min(room, len(b))
		s.head, b = append(s.head, b[:take]...), b[take:]
	}
	s.tail = append(s.tail, b...)
	if over := len(s.tail) - spoolHalf; over > 0 && len(s.tail) > 4*spoolHalf {
		s.tail, s.cut = append([]byte(nil), s.tail[over:]...), s.cut+int64(over)
	}
	return n, nil
}

// String is what was written, with a line that says how much is missing.
func (s *spool) String() string {
	if over := len(s.tail) - spoolHalf; over > 0 {
		s.tail, s.cut = s.tail[over:], s.cut+int64(over)
	}
	if s.cut == 0 {
		return printable(string(s.head) + string(s.tail))
	}
	return printable(string(s.head)) + fmt.Sprintf("\n[bawn: %d bytes are left out here]\n", s.cut) + printable(string(s.tail))
}
