package git

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxRef  = 1024 // bytes of a ref; file systems end at 255 a segment
	maxRepo = 512  // bytes of a repository's path
)

// CheckRef refuses refs that git-check-ref-format(1) refuses, refs outside
// "refs/", which no server updates, and refs that can't be shown to a person
// faithfully.
func CheckRef(ref string) error {
	bad := func(why string) error {
		return fmt.Errorf("ref %.200q: %s; want one as git-check-ref-format(1) has it", ref, why)
	}
	switch {
	case len(ref) > maxRef:
		return bad("it is too long")
	case !strings.HasPrefix(ref, "refs/"):
		return bad(`it does not begin with "refs/"`)
	case !utf8.ValidString(ref) || strings.ContainsFunc(ref, func(r rune) bool { return !unicode.IsPrint(r) }):
		return bad("it has characters that can't be shown")
	case strings.ContainsAny(ref, ` ~^:?*[\`):
		return bad("it has a character that git does not take")
	case strings.Contains(ref, "..") || strings.Contains(ref, "@{") || strings.HasSuffix(ref, "."):
		return bad("dots or @ stand where git does not take them")
	}
	for s := range strings.SplitSeq(ref, "/") {
		if s == "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".lock") {
			return bad("one of its parts is empty, hidden or a lock")
		}
	}
	return nil
}

// repoName brings the path of a repository into the form of [Operation.Repo].
// Servers disagree about dots, escapes and double slashes, so these are refused
// rather than interpreted.
func repoName(path string) (string, error) {
	bad := func(why string) error { return fmt.Errorf("repository %.200q: %s; want \"owner/name\"", path, why) }
	name := strings.TrimSuffix(strings.TrimPrefix(path, "/"), ".git")
	if len(name) == 0 || len(name) > maxRepo {
		return "", bad("it is empty or too long")
	}
	if strings.Contains(name, "..") {
		return "", bad("it has two dots")
	}
	for s := range strings.SplitSeq(name, "/") {
		if why := badSegment(s); why != "" {
			return "", bad(why)
		}
	}
	return name, nil
}

// badSegment returns the error in one part of a repository's path. Such a part
// never looks like an option, a hidden file or a second ".git", which git's
// servers add and strip by themselves (enter_repo in git's path.c).
func badSegment(s string) string {
	switch {
	case s == "" || s == "~":
		return "a part of it is empty"
	case strings.HasPrefix(s, "-") || strings.HasPrefix(s, "."):
		return "a part of it begins with a dash or a dot"
	case strings.HasSuffix(strings.ToLower(s), ".git") || strings.HasSuffix(s, "."):
		return `a part of it ends with ".git" or a dot`
	case strings.Contains(s[1:], "~") || strings.ContainsFunc(s, oddInPath):
		return "it has a character that servers read differently"
	}
	return ""
}

func oddInPath(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("-._~+@", r)
}
