package seatbelt

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A profile is text in the sandbox profile language under construction.
type profile struct{ b strings.Builder }

func (p *profile) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// comment writes words of the program's own.
func (p *profile) comment(text string) { p.line("; %s", text) }

// rule writes one rule with filters; without any it would hold for everything,
// so it is left out.
func (p *profile) rule(verdict, operations string, filters ...string) {
	if len(filters) > 0 {
		p.line("(%s %s %s)", verdict, operations, strings.Join(filters, " "))
	}
}

// A TextError says that a path can't be said in a profile.
type TextError struct{ Path string }

// Error names it.
func (e *TextError) Error() string {
	return fmt.Sprintf("path %q has a character that a sandbox profile can't say; rename it, or leave it out", e.Path)
}

// checkText refuses text that may be read differently than it is written. The
// language's strings have escapes for control characters, which differ between
// readers, and the kernel compares paths as UTF-8.
func checkText(path string) error {
	if path == "" || path[0] != '/' || !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return &TextError{path}
	}
	return nil
}

// quote writes a string that checkText takes.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func subpath(path string) string { return "(subpath " + quote(path) + ")" }

func literal(path string) string { return "(literal " + quote(path) + ")" }

// named is a filter for names, at any depth below root, with all below them. It is one
// expression: the kernel tries each for every operation.
func named(root string, names ...string) string { return anyOf(root, names, "(/|$)") }

// entry is a filter for names themselves, at any depth below root.
func entry(root string, names ...string) string { return anyOf(root, names, "$") }

func anyOf(root string, names []string, end string) string {
	var either []string
	for _, name := range names {
		either = append(either, pattern(name))
	}
	slices.Sort(either)
	return fmt.Sprintf(`(regex #"^%s/(.*/)?(%s)%s")`, pattern(strings.TrimSuffix(root, "/")), strings.Join(slices.Compact(either), "|"), end)
}

// pattern writes text as a regular expression that matches it in any case, as
// file systems of macOS do, and perhaps more: a character with a meaning in
// expressions or strings matches any character. It needs no escape.
func pattern(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && unicode.IsLetter(r):
			fmt.Fprintf(&b, "[%c%c]", unicode.ToLower(r), unicode.ToUpper(r))
		case r < utf8.RuneSelf && (unicode.IsDigit(r) || r == '/' || r == '-' || r == '_' || r == ' ' || r == ',' || r == '@' || r == ':' || r == '='):
			b.WriteRune(r)
		case r == '.':
			b.WriteString("[.]")
		default: // of as many bytes as it may have
			b.WriteString(".+")
		}
	}
	return b.String()
}
