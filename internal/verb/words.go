package verb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/redact"
)

// CompleteFlags tells the shell's completion what each flag of c takes: words,
// or a function that finds them when they are asked for.
func CompleteFlags(c *cobra.Command, words map[string]func() []string) {
	for flag, list := range words {
		_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return list(), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// Fixed are words that are always the same.
func Fixed(words ...string) func() []string { return func() []string { return words } }

// WriteJSON writes v as one indented document that a terminal prints as it stands.
func WriteJSON(w io.Writer, v any) error {
	enc := JSONLines(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// JSONLines returns an encoder that writes one document a line. What a terminal would
// obey or not show (C1 controls, bidirectional marks, tag characters) is escaped, which
// JSON readers undo (RFC 8259 section 7).
func JSONLines(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(jsonWriter{w})
	enc.SetEscapeHTML(false)
	return enc
}

// A jsonWriter gets whole documents of valid UTF-8, in which such characters stand in
// strings only.
type jsonWriter struct{ to io.Writer }

func (w jsonWriter) Write(p []byte) (int, error) {
	var out []byte
	rest := p
	for {
		i := bytes.IndexFunc(rest, func(r rune) bool { return r >= 0x7f && redact.Invisible(r) })
		if i < 0 {
			break
		}
		r, n := utf8.DecodeRune(rest[i:])
		out = append(out, rest[:i]...)
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		rest = rest[i+n:]
	}
	if out == nil {
		return w.to.Write(p)
	}
	if _, err := w.to.Write(append(out, rest...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Visible escapes what a terminal would obey or hide.
func Visible(s string) string { return redact.Visible(s) }
