package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
)

// paths is what path entries are resolved against, and what no entry may open.
type paths struct {
	workspace, home string
	own             []string // Bawn's own directories
	tools           []string // Inputs.Tools
}

func pathEntry(s string, p paths) (string, error) {
	clean, err := fspath.Clean(s, p.workspace, p.home)
	if err != nil {
		return "", err
	}
	for _, own := range p.own {
		if fspath.Below(clean, own) {
			return "", fmt.Errorf("path %s lies in %q, which holds Bawn's own state and is never shown to a session; remove it", quote(s), own)
		}
	}
	return clean, nil
}

// openEntry accepts a path, or the name of a group of credentials.
func openEntry(s string, p paths) (string, error) {
	if strings.ContainsAny(s, "/~") || s == "" {
		return pathEntry(s, p)
	}
	return s, wantName("credential", s)
}

func agentName(s string, _ paths) (string, error) {
	if s == "" { // not a valid name: as if it were not set
		return s, nil
	}
	return s, wantName("agent", s)
}

func profileName(s string, _ paths) (string, error) { return s, wantName("profile", s) }

// wantName checks a name that ends up in messages, logs and file names.
func wantName(what, s string) error {
	if len(s) == 0 || len(s) > 64 || !alnum(s[0]) || !only(s, func(c byte) bool { return alnum(c) || strings.IndexByte("._-", c) >= 0 }) {
		return fmt.Errorf("%s %s is no name; want up to 64 of a-z, 0-9, \".\", \"_\" and \"-\", the first a letter or digit", what, quote(s))
	}
	return nil
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

func only(s string, ok func(byte) bool) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return !ok(c) })
}

// envEntry accepts NAME, PREFIX* and NAME=value (environ(7)).
func envEntry(s string, _ paths) (string, error) {
	name, value, set := strings.Cut(s, "=")
	stem := name
	if !set {
		stem = strings.TrimSuffix(name, "*")
	}
	switch {
	case s == "*":
		return "", fmt.Errorf("env %q would pass every variable, credentials included; want names, or a prefix such as \"LC_*\"", s)
	case stem == "" || stem[0] >= '0' && stem[0] <= '9' || !only(stem, envLetter):
		return "", fmt.Errorf("env %s is no variable; want NAME, PREFIX* or NAME=value", quote(s))
	case strings.IndexByte(value, 0) >= 0:
		return "", fmt.Errorf("env %s has a NUL in its value", quote(s))
	}
	return s, nil
}

func envLetter(c byte) bool { return alnum(c) || upper(c) || c == '_' }

// envCovers reports whether the entry passes all that another one would.
func envCovers(entry, other string) bool {
	if prefix, ok := strings.CutSuffix(entry, "*"); ok && !strings.Contains(entry, "=") {
		return !strings.Contains(other, "=") && strings.HasPrefix(other, prefix)
	}
	return entry == other
}

func deviceEntry(s string, _ paths) (string, error) {
	ok := func(c byte) bool { return alnum(c) || upper(c) || strings.IndexByte("._-/", c) >= 0 }
	if s == "" || s[0] == '/' || path.Clean(s) != s || strings.HasPrefix(s, ".") || !only(s, ok) {
		return "", fmt.Errorf("device %s is no name below /dev; want for example \"kvm\" or \"dri/renderD128\"", quote(s))
	}
	return s, nil
}

// protectedEntry accepts a name, or a path below the workspace.
func protectedEntry(s string, _ paths) (string, error) {
	if _, err := fspath.Clean(s, "/", "/"); err != nil {
		return "", err
	}
	clean := path.Clean(s)
	if clean[0] == '/' || clean[0] == '~' || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, "*?[") {
		return "", fmt.Errorf("protected %s is no name in the workspace; want for example \"deploy.sh\" or \"ci/hooks\"", quote(s))
	}
	return clean, nil
}

// unprotectEntry accepts a name of the table that can be opened.
func unprotectEntry(s string, _ paths) (string, error) {
	key, err := protect.Key(s)
	if err != nil {
		return "", fmt.Errorf("unprotect: %w", err)
	}
	return key, nil
}

// anyText is for entries that are checked against the table of keys later.
func anyText(s string, _ paths) (string, error) { return s, nil }
