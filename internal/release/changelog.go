package main

import (
	"errors"
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

// writeChangelog writes the changelog of a tree as it is with a version: CHANGELOG.md with
// all fragments, or the version's entries in one line each, as Debian's packages have it.
func writeChangelog(w io.Writer, version, date, form, tree string) error {
	all, err := fragments(filepath.Join(tree, "changelog"))
	if err != nil {
		return err
	}
	old, err := os.ReadFile(filepath.Join(tree, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := merged(string(old), version, date, all)
	if err != nil {
		return err
	}
	switch form {
	case "markdown":
		_, err = io.WriteString(w, text)
		return err
	case "debian":
		return debianChangelog(w, version, date, text)
	}
	return fmt.Errorf("the form %q is unknown; want markdown or debian", form)
}

// collect writes the fragments of a tree into its CHANGELOG.md and removes them.
func collect(version, date, tree string) error {
	var text strings.Builder
	if err := writeChangelog(&text, version, date, "markdown", tree); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree, "CHANGELOG.md"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	all, err := fragments(filepath.Join(tree, "changelog"))
	for _, f := range all {
		err = errors.Join(err, os.Remove(filepath.Join(tree, "changelog", "unreleased", f.file)))
	}
	return err
}

// section marks where a version begins, kindHeading where entries of one kind do.
const section, kindHeading = "\n## ", "\n### "

// merged adds fragments to the version's section of a changelog, which is made on top where
// the newest one is of another version.
func merged(old, version, date string, all []fragment) (string, error) {
	head, rest, ok := strings.Cut(old, section)
	if !ok && len(all) == 0 || strings.TrimSpace(head) == "" {
		return "", fmt.Errorf("the changelog has no section and there are no fragments; want \"# Changelog\" and one of both")
	}
	newest, older, isOlder := strings.Cut(rest, section)
	if !strings.HasPrefix(rest, version+" ") {
		if len(all) == 0 {
			return "", fmt.Errorf("the changelog has no section of version %s, and there are no fragments", version)
		}
		newest, older, isOlder = version+" - "+date+"\n", rest, ok
	}
	for _, kind := range kinds {
		newest = withEntries(newest, kind[1], entries(all, kind[0]))
	}
	text := strings.TrimRight(head, "\n") + "\n" + section + strings.TrimRight(newest, "\n") + "\n"
	if isOlder {
		text += section + older
	}
	return text, nil
}

// entries are the fragments of a kind as Markdown.
func entries(all []fragment, kind string) string {
	var b strings.Builder
	for _, f := range all {
		if f.kind != kind {
			continue
		}
		fmt.Fprintf(&b, "* %s\n", f.title)
		if f.text != "" {
			fmt.Fprintf(&b, "\n  %s\n\n", strings.ReplaceAll(f.text, "\n", "\n  "))
		}
	}
	return b.String()
}

// withEntries puts entries at the end of the ones of their kind in a section, or behind all
// others.
func withEntries(text, heading, entries string) string {
	if entries == "" {
		return text
	}
	before, after, ok := strings.Cut(text, kindHeading+heading+"\n")
	if !ok {
		return strings.TrimRight(text, "\n") + "\n" + kindHeading + heading + "\n\n" + entries
	}
	own, others, isMore := strings.Cut(after, kindHeading)
	text = before + kindHeading + heading + "\n" + strings.TrimRight(own, "\n") + "\n" + entries
	if isMore {
		text = strings.TrimRight(text, "\n") + "\n" + kindHeading + others
	}
	return text
}

// debianChangelog lists what a changelog's newest section has, in the layout that
// deb-changelog(5) describes.
func debianChangelog(w io.Writer, version, date, text string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(text, section)
	newest, _, _ := strings.Cut(rest, section)
	var b strings.Builder
	fmt.Fprintf(&b, "bawn (%s-1) stable; urgency=medium\n\n", version)
	kind := ""
	for line := range strings.Lines(newest) {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			kind = strings.TrimSpace(heading) + ": "
		} else if entry, ok := strings.CutPrefix(line, "* "); ok {
			fmt.Fprintf(&b, "  * %s\n", wrapped(kind+entry, 74, "    "))
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
