package gitstore

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// maxConfig bounds a configuration that is read.
const maxConfig = 1 << 20

// A setting is one line of a git configuration. Section and key are in lower
// case; sub is as it is written.
type setting struct {
	section, sub, key string
	value             string
	bare              bool // a key without "=", which stands for true
}

// name is the setting's name with "*" for the subsection.
func (s setting) name() string {
	if s.sub != "" {
		return s.section + ".*." + s.key
	}
	return s.section + "." + s.key
}

// kept are the settings that a private git directory takes from the
// repository's: none of them names a program, a file of configuration or a
// secret.
var kept = map[string]bool{
	"core.repositoryformatversion": true, "core.bare": true, "core.filemode": true, "core.symlinks": true, "core.ignorecase": true,
	"core.autocrlf": true, "core.eol": true, "core.safecrlf": true, "core.precomposeunicode": true, "core.logallrefupdates": true,
	"core.sparsecheckout": true, "core.sparsecheckoutcone": true, "core.abbrev": true, "core.quotepath": true,
	"index.sparse": true, "index.version": true,
	"extensions.objectformat": true, "extensions.worktreeconfig": true, "extensions.partialclone": true, "extensions.relativeworktrees": true,
	"remote.*.url": true, "remote.*.pushurl": true, "remote.*.fetch": true, "remote.*.push": true, "remote.*.tagopt": true, "remote.*.mirror": true,
	"remote.*.promisor": true, "remote.*.partialclonefilter": true, "remote.*.prune": true, "remote.pushdefault": true,
	"branch.*.remote": true, "branch.*.merge": true, "branch.*.rebase": true, "branch.*.pushremote": true, "branch.autosetupmerge": true, "branch.autosetuprebase": true,
	"submodule.*.url": true, "submodule.*.active": true, "submodule.*.branch": true, "submodule.*.ignore": true, "submodule.active": true, "submodule.recurse": true,
	"user.name": true, "user.email": true, "author.name": true, "author.email": true, "committer.name": true, "committer.email": true, "user.useconfigonly": true,
	"init.defaultbranch": true, "merge.conflictstyle": true, "merge.ff": true, "diff.algorithm": true, "diff.renames": true,
	"pull.rebase": true, "pull.ff": true, "push.default": true, "push.autosetupremote": true, "push.followtags": true, "fetch.prune": true,
	"rebase.autosquash": true, "rebase.autostash": true, "rebase.updaterefs": true, "rerere.enabled": true, "rerere.autoupdate": true,
	"commit.cleanup": true, "commit.verbose": true, "status.showuntrackedfiles": true, "lfs.repositoryformatversion": true,
}

// keptExactly are the drivers that programs of everybody's set up: the words
// are known.
var keptExactly = map[string]string{
	"filter.lfs.clean": "git-lfs clean -- %f", "filter.lfs.smudge": "git-lfs smudge -- %f", "filter.lfs.process": "git-lfs filter-process", "filter.lfs.required": "true",
}

// parseConfig reads a configuration as git-config(1) describes it. Files that it
// includes are not read.
func parseConfig(text string) ([]setting, error) {
	if len(text) > maxConfig {
		return nil, errTooMuch
	}
	p := &configParser{text: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	for p.next() {
	}
	return p.list, p.err
}

type configParser struct {
	text         string
	at           int
	section, sub string
	list         []setting
	err          error
}

var errConfig = errors.New("the configuration is not as git writes it")

// next reads a section's header, a comment or a setting.
func (p *configParser) next() bool {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n\v\f", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at >= len(p.text) || p.err != nil {
		return false
	}
	ok := true
	switch ch := p.text[p.at]; {
	case ch == '#' || ch == ';':
		p.skipLine()
	case ch == '[':
		ok = p.header()
	case letter(ch):
		ok = p.setting()
	default:
		ok = false
	}
	if !ok {
		p.err = errConfig
	}
	return ok
}

func letter(ch byte) bool { return ch|0x20 >= 'a' && ch|0x20 <= 'z' }

func wordByte(ch byte) bool { return letter(ch) || ch >= '0' && ch <= '9' || ch == '-' }

func (p *configParser) skipLine() {
	if end := strings.IndexByte(p.text[p.at:], '\n'); end >= 0 {
		p.at += end
		return
	}
	p.at = len(p.text)
}

// header reads [section], [section "sub"] or [section.sub].
func (p *configParser) header() bool {
	p.at++
	start := p.at
	for p.at < len(p.text) && (wordByte(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	name := strings.ToLower(p.text[start:p.at])
	p.section, p.sub, _ = strings.Cut(name, ".")
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == '"' {
		p.at++
		var sub strings.Builder
		for {
			if p.at >= len(p.text) || p.text[p.at] == '\n' {
				return false
			}
			ch := p.text[p.at]
			p.at++
			if ch == '"' {
				break
			}
			if ch == '\\' {
				if p.at >= len(p.text) || p.text[p.at] == '\n' {
					return false
				}
				ch = p.text[p.at]
				p.at++
			}
			sub.WriteByte(ch)
		}
		p.sub = sub.String()
	}
	if p.at >= len(p.text) || p.text[p.at] != ']' || p.section == "" {
		return false
	}
	p.at++
	return true
}

// setting reads key = value.
func (p *configParser) setting() bool {
	start := p.at
	for p.at < len(p.text) && wordByte(p.text[p.at]) {
		p.at++
	}
	s := setting{section: p.section, sub: p.sub, key: strings.ToLower(p.text[start:p.at])}
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	switch {
	case p.section == "":
		return false
	case p.at >= len(p.text) || p.text[p.at] == '\n' || p.text[p.at] == '\r' || p.text[p.at] == '#' || p.text[p.at] == ';':
		s.bare = true
		p.skipLine()
	case p.text[p.at] != '=':
		return false
	default:
		p.at++
		var ok bool
		if s.value, ok = p.value(); !ok {
			return false
		}
	}
	p.list = append(p.list, s)
	return true
}

// value reads to the end of a line: quotes and comments are taken off, and
// blanks at both ends.
func (p *configParser) value() (string, bool) {
	var b strings.Builder
	quoted, comment, blanks := false, false, 0
	for ; ; p.at++ {
		if p.at >= len(p.text) || p.text[p.at] == '\n' {
			return b.String()[:b.Len()-blanks], !quoted
		}
		ch := p.text[p.at]
		switch {
		case comment:
		case !quoted && (ch == ' ' || ch == '\t'):
			if b.Len() > 0 {
				b.WriteByte(ch)
				blanks++
			}
		case !quoted && (ch == '#' || ch == ';'):
			comment = true
		case ch == '\\':
			if p.at++; p.at >= len(p.text) {
				return "", false
			}
			ch, ok := escaped(p.text[p.at])
			if !ok {
				return "", false
			}
			if ch != 0 {
				b.WriteByte(ch)
				blanks = 0
			}
		case ch == '"':
			quoted = !quoted
			blanks = 0
		default:
			b.WriteByte(ch)
			blanks = 0
		}
	}
}

// escaped is the character for a backslash sequence; 0 for a line that goes on.
func escaped(ch byte) (byte, bool) {
	switch ch {
	case '\n':
		return 0, true
	case 'n':
		return '\n', true
	case 't':
		return '\t', true
	case 'b':
		return '\b', true
	case '"', '\\':
		return ch, true
	}
	return 0, false
}

// cleanConfig is the part of a configuration that a private git directory has.
// module says that it is a submodule's, whose work tree is named there.
func cleanConfig(list []setting, module bool) string {
	var b strings.Builder
	section := ""
	for _, s := range list {
		if !keeps(&s, module) {
			continue
		}
		header := "[" + s.section + "]"
		if s.sub != "" {
			header = fmt.Sprintf("[%s \"%s\"]", s.section, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.sub))
		}
		if header != section {
			b.WriteString(header + "\n")
			section = header
		}
		if s.bare {
			b.WriteString("\t" + s.key + "\n")
		} else {
			b.WriteString("\t" + s.key + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s.value) + "\"\n")
		}
	}
	return b.String()
}

// keeps reports whether a setting is kept, and removes secrets from it.
func keeps(s *setting, module bool) bool {
	if strings.ContainsAny(s.sub+s.value, "\x00\r") || strings.Contains(s.sub, "\n") {
		return false
	}
	full := s.section + "." + s.key
	if s.sub != "" {
		full = s.section + "." + s.sub + "." + s.key
	}
	if known, ok := keptExactly[full]; ok {
		return s.value == known
	}
	if full == "core.worktree" {
		return module && !filepath.IsAbs(s.value)
	}
	if full == "core.hookspath" { // hooks that the project has; they run inside
		return !module && filepath.IsLocal(s.value)
	}
	if !kept[s.name()] {
		return false
	}
	if s.key == "url" || s.key == "pushurl" {
		var ok bool
		s.value, ok = plainURL(s.value)
		return ok
	}
	return true
}

// plainURL takes user names and passwords out of a URL, and refuses those that
// git hands to a program.
func plainURL(v string) (string, bool) {
	if v == "" || v[0] == '-' || strings.Contains(v, "::") || strings.ContainsAny(v, "\n\x00") {
		return "", false
	}
	scheme, _, ok := strings.Cut(v, "://")
	if !ok {
		return v, true // a path, or host:path
	}
	u, err := url.Parse(v)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(scheme) {
	case "https", "http":
		u.User, u.RawQuery, u.Fragment = nil, "", ""
	case "ssh", "git", "git+ssh", "ssh+git":
		if u.User != nil {
			u.User = url.User(u.User.Username())
		}
	case "file":
	default:
		return "", false
	}
	return u.String(), true
}

// A format is what of a configuration says how a repository is read.
type format struct {
	size    int // digits of an object ID
	partial bool
	fold    bool // names that differ in case only are one
	sparse  bool
	perTree bool // worktrees have configurations of their own
}

// formatOf refuses repositories that bawn does not know how to read.
func formatOf(list []setting) (format, error) {
	f := format{size: 40}
	for _, s := range list {
		on := s.bare || truth(s.value)
		switch name := s.section + "." + s.key; {
		case s.section == "extensions":
			switch s.key {
			case "objectformat":
				switch strings.ToLower(s.value) {
				case "sha1":
				case "sha256":
					f.size = 64
				default:
					return f, fmt.Errorf("objects of format %q", s.value)
				}
			case "partialclone":
				f.partial = true
			case "worktreeconfig":
				f.perTree = on
			case "relativeworktrees", "noop", "preciousobjects":
			default:
				return f, fmt.Errorf("extension %q", s.key)
			}
		case name == "core.repositoryformatversion" && s.value != "0" && s.value != "1":
			return f, fmt.Errorf("format version %q", s.value)
		case name == "core.ignorecase":
			f.fold = on
		case name == "core.sparsecheckout":
			f.sparse = on
		case s.section == "remote" && s.key == "promisor" && on:
			f.partial = true
		}
	}
	return f, nil
}

func truth(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}
