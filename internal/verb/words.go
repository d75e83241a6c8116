package verb

import (
	"encoding/json"
	"io"

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

// WriteJSON writes v as one indented document.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Visible escapes what a terminal would obey or hide.
func Visible(s string) string { return redact.Visible(s) }
