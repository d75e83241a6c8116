package plugin

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/redact"
)

// emojiStyle is the variation selector that asks for the coloured form of a
// character: common in descriptions, and no more than that form.
const emojiStyle = '\ufe0f'

// maxName is the longest name of a tool, in bytes; clients have lower limits
// for it together with the plugin's name.
const maxName = 64

// CheckName returns the error in the name of a tool: only letters, digits, "_",
// "-", "." and "/" of ASCII are accepted, so that it means what it looks like.
func CheckName(tool string) error {
	if tool == "" || len(tool) > maxName {
		return fmt.Errorf("the name of a tool has %d bytes; want 1 to %d", len(tool), maxName)
	}
	for _, r := range tool {
		if !plain(r) {
			return fmt.Errorf("the name %+q of a tool has %U; want letters, digits, \"_\", \"-\", \".\" and \"/\" of ASCII", tool, r)
		}
	}
	if strings.Contains(tool, "__") {
		return fmt.Errorf("the name %q of a tool has \"__\", which parts the plugin from the tool", tool)
	}
	return nil
}

func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-./", r)
}

// looks maps characters that look alike to one of them.
var looks = strings.NewReplacer("0", "o", "1", "l", "i", "l", "5", "s", "rn", "m", "vv", "w", "-", "", "_", "", ".", "", "/", "")

// Looks is what a name looks like at a glance: two names of one look are
// confusable.
func Looks(name string) string { return looks.Replace(strings.ToLower(name)) }

// checkText returns the error in a text for a model and a human: characters
// that act on a terminal or are invisible.
func checkText(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("it is not UTF-8")
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && r != '\r' && r != emojiStyle && redact.Invisible(r) {
			return fmt.Errorf("it has %U, which is not seen", r)
		}
	}
	return nil
}

// CheckPlugin returns the error in the name of a plugin: small letters, digits
// and "-", at most 32, the first a letter.
func CheckPlugin(name string) error {
	ok := len(name) > 0 && len(name) <= 32 && 'a' <= name[0] && name[0] <= 'z' && !strings.HasSuffix(name, "-") && !strings.Contains(name, "--")
	for i := range len(name) {
		c := name[i]
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%q is no name of a plugin; want small letters, digits and \"-\", at most 32, a letter first", cut(name))
	}
	return nil
}
