package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/redact"
)

// A Mask is a file that a guest sees in place of the user's own file. It has the user's
// other settings, and placeholders in place of credentials.
type Mask struct {
	Target  string // absolute
	Content []byte
	Mode    fs.FileMode
}

// maskMode suits programs that insist on a private file.
const maskMode = 0o400

// maxReal is the largest file that is read for its settings, in bytes.
const maxReal = 1 << 20

// Masks returns the files and variables with the placeholders of one session. bindings
// come from Vault.Bindings. A file has the format that its clients read. If the user has
// such a file, its other settings are kept, a bound credential becomes its placeholder,
// and other credentials are left out. A file that can't be parsed is replaced by one with
// only the placeholders, and a note says so. The notes are for the user; they name files
// and hosts, not values.
func Masks(bindings []bawn.Binding, home string) (masks []Mask, env, notes []string, err error) {
	byFile := map[string][]bawn.Binding{}
	for _, b := range bindings {
		if b.Placeholder == "" {
			return nil, nil, nil, fmt.Errorf("the binding of %q has no placeholder; want one that Bindings made", b.Secret)
		}
		clean := b
		clean.Placeholder = ""
		if err := checkBinding(clean); err != nil {
			return nil, nil, nil, err
		}
		if b.File != "" {
			target := expand(b.File, home)
			if !filepath.IsAbs(target) {
				return nil, nil, nil, fmt.Errorf("the file %q is below a home directory that is %q; want an absolute one", b.File, home)
			}
			byFile[target] = append(byFile[target], b)
		}
		if b.Env != "" {
			env = append(env, variables(b)...)
		}
	}
	slices.Sort(env)
	env = slices.Compact(env)
	for _, target := range slices.Sorted(maps.Keys(byFile)) {
		m, n, err := maskFile(target, byFile[target])
		if err != nil {
			return nil, nil, nil, err
		}
		masks, notes = append(masks, m), append(notes, n...)
	}
	return masks, env, append(notes, envNotes(env)...), twoValues(env)
}

func expand(file, home string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return file
}

// envNotes returns warnings about placeholders in variables, which every process of the
// session can read.
func envNotes(env []string) []string {
	var notes []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		notes = append(notes, fmt.Sprintf("%s is in the environment of every process of the session: a placeholder, but one that programs print, log and send about; where the client reads a file, bind with --file", name))
	}
	return notes
}

func twoValues(env []string) error {
	for i := 1; i < len(env); i++ {
		if a, _, _ := strings.Cut(env[i-1], "="); strings.HasPrefix(env[i], a+"=") {
			return fmt.Errorf("the variable %q would have the placeholders of two secrets", a)
		}
	}
	return nil
}

// A writer writes a file of one format anew. The real file may be nil. An
// error says that the real file can't be understood.
type writer func(real []byte, bs []bawn.Binding) (content []byte, notes []string, err error)

var writers = map[string]writer{
	"npmrc": maskNpmrc, "netrc": maskNetrc, "kubeconfig": maskKube, "gh": maskGH,
	"docker": maskDocker, "git-credentials": maskGit, "pip": maskPip, "aws": maskAWS, "raw": maskRaw,
}

func maskFile(target string, bs []bawn.Binding) (Mask, []string, error) {
	kind := kindOf(bs[0].Format)
	for _, b := range bs {
		if kindOf(b.Format) != kind {
			return Mask{}, nil, fmt.Errorf("the file %q would have the formats %q and %q", target, kind, kindOf(b.Format))
		}
	}
	write := writers[kind]
	real, err := atomicfile.Read(target, maxReal)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = nil, nil
	}
	var content []byte
	var notes []string
	if err == nil {
		content, notes, err = write(real, bs)
	}
	if err == nil && kind != "raw" {
		err = leaks(content, bs)
	}
	if err != nil {
		why := err
		if content, notes, err = write(nil, bs); err != nil {
			return Mask{}, nil, fmt.Errorf("the file %q: %w", target, err)
		}
		notes = append(notes, "its settings are not kept: "+why.Error())
	}
	for i := range notes {
		notes[i] = target + ": " + notes[i]
	}
	return Mask{target, content, maskMode}, notes, nil
}

// leaks looks for text like a credential in lines that are not Bawn's: a second check
// behind that of each format.
func leaks(content []byte, bs []bawn.Binding) error {
	for line := range strings.Lines(string(content)) {
		ours := slices.ContainsFunc(bs, func(b bawn.Binding) bool {
			return slices.ContainsFunc(parts(b), func(p string) bool { return holds(line, p) })
		})
		if !ours && (redact.String(line) != line || hasLogin(line)) {
			return errors.New("something in it looks like a credential that is not bound")
		}
	}
	return nil
}

// hasLogin looks for USER:PASSWORD@HOST, which a proxy may have without a
// scheme before it.
func hasLogin(line string) bool {
	parts := strings.Split(line, "@")
	return slices.ContainsFunc(parts[:len(parts)-1], func(before string) bool {
		word := before[strings.LastIndexAny(before, " \t/\"'=,;")+1:]
		return strings.IndexByte(word, ':') > 0
	})
}

// holds reports whether a line has the placeholder, as it is or encoded as the
// formats do it.
func holds(line, placeholder string) bool {
	if strings.Contains(line, placeholder) || strings.Contains(line, url.UserPassword("", placeholder).String()) {
		return true
	}
	for word := range strings.FieldsFuncSeq(line, func(c rune) bool { return !alnum(c) && c != '+' && c != '/' }) {
		if text, err := base64.RawStdEncoding.DecodeString(word); err == nil && strings.HasSuffix(string(text), placeholder) {
			return true
		}
	}
	return false
}

// covers reports whether a binding's host has a host of a file, which may have
// a port. A binding without a port has every port.
func covers(bound, host string) bool {
	name, port, has := splitPort(strings.ToLower(host))
	want, wantPort, wantHas := splitPort(bound)
	if wantHas && has && port != wantPort {
		return false
	}
	if below, ok := strings.CutPrefix(want, "*"); ok {
		return strings.HasSuffix(name, below) && len(name) > len(below)
	}
	return name == want
}

// bindingOf returns the first binding at one of the places for a host.
func bindingOf(bs []bawn.Binding, host string, at ...bawn.Place) (bawn.Binding, bool) {
	for _, b := range bs {
		if covers(b.Host, host) && slices.Contains(at, b.Place) {
			return b, true
		}
	}
	return bawn.Binding{}, false
}

// isWild reports whether a host is a pattern.
func isWild(host string) bool { return strings.HasPrefix(host, "*.") }

// concrete returns a host to write for a binding that the real file does not
// mention: with a pattern, the name that goes with first, or an error.
func concrete(b bawn.Binding, first string) (string, error) {
	if !isWild(b.Host) {
		return b.Host, nil
	}
	if first == "" {
		return "", failure("bind it to that very host", "the host %q is a pattern and the file names none that fits; want the host that stands in the file", b.Host)
	}
	return first + b.Host[1:], nil
}

// userOf returns the user name that a client sends, if the file has or needs one.
func userOf(b bawn.Binding, real string) string {
	switch {
	case b.Name != "":
		return b.Name
	case real != "":
		return real
	}
	return "token"
}

// dropped is the note about credentials that were left out.
func dropped(n int, what string) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d %s that no secret is bound to left out", n, what)}
}

func maskRaw(_ []byte, bs []bawn.Binding) ([]byte, []string, error) {
	for _, b := range bs {
		if b.Format != bs[0].Format || b.Placeholder != bs[0].Placeholder {
			return nil, nil, errors.New("a raw file holds one secret in one form")
		}
	}
	_, template, has := strings.Cut(bs[0].Format, ":")
	if !has {
		template = "{}\n"
	}
	return []byte(strings.ReplaceAll(template, "{}", bs[0].Placeholder)), nil, nil
}
