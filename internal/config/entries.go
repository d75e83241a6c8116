package config

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
)

// paths is what path entries are resolved against, and what no entry may open.
type paths struct {
	workspace, home string
	own             []string // Bawn's own directories
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
	if s == "" { // nobody's name: as if it were not set
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

// anyText is for entries that are checked against the table of keys later.
func anyText(s string, _ paths) (string, error) { return s, nil }

// hostEntry accepts a host in normal form and names that form otherwise.
func hostEntry(s string, _ paths) (string, error) {
	if err := normalHost(s); err != nil {
		if n := normalize(s); n != s && normalHost(n) == nil {
			return "", fmt.Errorf("host %s is not in normal form; write %q", quote(s), n)
		}
		return "", fmt.Errorf("host %s: %w; want a name such as \"proxy.golang.org\", \"*.example.org\" or \"example.org:443\"", quote(s), err)
	}
	return s, nil
}

// normalize drops what people paste along with a host.
func normalize(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	return strings.TrimSuffix(s, ".")
}

// normalHost checks a name of letters, digits and hyphens (RFC 1123 section
// 2.1, RFC 5891 section 2.3.1) in lower case. Digits only are an IPv4 address,
// in its one canonical form.
func normalHost(s string) error {
	name, port, found := strings.Cut(s, ":")
	if found && !normalPort(port) {
		return fmt.Errorf("%s is no port", quote(port))
	}
	plain := strings.TrimPrefix(name, "*.")
	labels := strings.Split(plain, ".")
	for _, l := range labels {
		if err := normalLabel(l); err != nil {
			return err
		}
	}
	if len(plain) > 253 {
		return fmt.Errorf("it has more than 253 letters")
	}
	return numeric(name, labels[len(labels)-1])
}

func normalPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}

func normalLabel(l string) error {
	switch {
	case l == "":
		return fmt.Errorf("a part between dots is empty")
	case len(l) > 63:
		return fmt.Errorf("the part %s has more than 63 letters", quote(l))
	case l[0] == '-' || l[len(l)-1] == '-':
		return fmt.Errorf("the part %s begins or ends with a hyphen", quote(l))
	case !only(l, func(c byte) bool { return alnum(c) || c == '-' }):
		return fmt.Errorf("the part %s has other characters than a-z, 0-9 and \"-\" (international names are written xn--…)", quote(l))
	}
	return nil
}

// numeric refuses what inet_aton(3) would read as an address but is not
// written as one: "127.1", "0x7f.1", "2130706433".
func numeric(name, last string) error {
	digits := func(c byte) bool { return c >= '0' && c <= '9' }
	if !only(last, digits) && !strings.HasPrefix(last, "0x") {
		return nil
	}
	if a, err := netip.ParseAddr(name); err != nil || !a.Is4() {
		return fmt.Errorf("%s ends in a number but is no IPv4 address", quote(name))
	}
	return nil
}

// hostCovers reports whether the entry reaches all that another one would.
func hostCovers(entry, other string) bool {
	name, port, has := strings.Cut(entry, ":")
	otherName, otherPort, otherHas := strings.Cut(other, ":")
	if has && (!otherHas || port != otherPort) {
		return false
	}
	if suffix, ok := strings.CutPrefix(name, "*"); ok {
		return strings.HasSuffix(otherName, suffix)
	}
	return name == otherName
}
