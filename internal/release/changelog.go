package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A fragment is one file of changelog/unreleased: "KIND: TITLE", and paragraphs.
type fragment struct{ file, kind, title, text string }

// kinds are the kinds of fragments, in the order of the changelog, with their headings.
var kinds = [][2]string{{"Security", "Security"}, {"Feature", "New"}, {"Change", "Changed"}, {"Bugfix", "Mended"}}

func fragments(dir string) ([]fragment, error) {
	files, err := filepath.Glob(filepath.Join(dir, "unreleased", "*"))
	if err != nil {
		return nil, err
	}
	var out []fragment
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		f, err := parseFragment(filepath.Base(file), string(text))
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func parseFragment(name, text string) (fragment, error) {
	head, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	kind, title, ok := strings.Cut(head, ": ")
	if !ok || !slices.ContainsFunc(kinds, func(k [2]string) bool { return k[0] == kind }) || strings.TrimSpace(title) == "" {
		return fragment{}, fmt.Errorf("changelog fragment %s begins with %q; want \"KIND: TITLE\", KIND being Feature, Change, Bugfix or Security", name, head)
	}
	return fragment{file: name, kind: kind, title: strings.TrimSpace(title), text: strings.TrimSpace(rest)}, nil
}

// writeChangelog writes the section of a version, as Markdown with all that the
// fragments say, or with their titles as Debian's packages have it.
func writeChangelog(w io.Writer, version, date, form, dir string) error {
	all, err := fragments(dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s/unreleased is empty", dir)
	}
	switch form {
	case "markdown":
		return markdownChangelog(w, version, date, all)
	case "debian":
		return debianChangelog(w, version, date, all)
	}
	return fmt.Errorf("the form %q is unknown; want markdown or debian", form)
}

func markdownChangelog(w io.Writer, version, date string, all []fragment) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Changelog\n\n## %s - %s\n", version, date)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n### %s\n\n", kind[1])
		for _, f := range all {
			if f.kind != kind[0] {
				continue
			}
			fmt.Fprintf(&b, "* %s\n", f.title)
			if f.text != "" {
				fmt.Fprintf(&b, "\n  %s\n\n", strings.ReplaceAll(f.text, "\n", "\n  "))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// debianChangelog has the layout that deb-changelog(5) describes.
func debianChangelog(w io.Writer, version, date string, all []fragment) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "bawn (%s-1) stable; urgency=medium\n\n", version)
	for _, kind := range kinds {
		for _, f := range all {
			if f.kind == kind[0] {
				fmt.Fprintf(&b, "  * %s\n", wrapped(kind[1]+": "+f.title, 74, "    "))
			}
		}
	}
	fmt.Fprintf(&b, "\n -- Bawn <bawn-dev@users.noreply.github.com>  %s\n", day.UTC().Format(time.RFC1123Z))
	_, err = io.WriteString(w, b.String())
	return err
}

// wrapped breaks a text into lines of at most width bytes, where its words allow that.
func wrapped(s string, width int, indent string) string {
	line, out := 0, strings.Builder{}
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
		case line+1+len(word) > width:
			out.WriteString("\n" + indent)
			line = 0
		default:
			out.WriteString(" ")
			line++
		}
		out.WriteString(word)
		line += len(word)
	}
	return out.String()
}
