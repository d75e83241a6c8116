// Package grants keeps the rules that a human's answers "always" and "never"
// have made, in a file of Bawn's own. They are rules of the user's, beside
// those that the human has written, which this file never touches.
//
// The file begins with a checksum of the rest. A missing part could be a
// denial, so a file that does not match is refused as a whole.
package grants

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/importer"
)

// Name is the file's name in the directory of Bawn's state.
const Name = "approved-rules.toml"

// MaxRules bounds the file.
const MaxRules = 2000

const maxFile = 2 << 20

// A File holds the rules of one user. Its methods may be called by several
// processes at a time.
type File struct{ path string }

// In returns the file in a directory of state, which need not be there.
func In(state string) *File { return &File{filepath.Join(state, Name)} }

// Path returns where the file is.
func (f *File) Path() string { return f.path }

// A TamperedError says that the file is not as Bawn wrote it.
type TamperedError struct{ Path, Problem string }

func (e *TamperedError) Error() string {
	return fmt.Sprintf("%s: %s; nothing is decided by half of what was answered", e.Path, e.Problem)
}

// Remedy says what to do about it.
func (e *TamperedError) Remedy() string {
	return fmt.Sprintf("look at %s, then \"bawn policy approved forget --all\" removes it (answer anew), or put back the copy it was", e.Path)
}

// Rules returns the rules, none where there is no file. The error is a
// *TamperedError where the file is not as it was written, or others than its
// owner may write it.
func (f *File) Rules() ([]bawn.Rule, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		return nil, &TamperedError{f.path, fmt.Sprintf("its mode is %04o: others may write it; want 0600", info.Mode().Perm())}
	}
	data, err := atomicfile.Read(f.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the approved rules: %w", err)
	}
	return f.parse(data)
}

const (
	head    = "# Written by Bawn from what you have answered. \"bawn policy approved\" lists and removes.\n"
	sumLead = "# sum: "
)

func sum(body string) string {
	s := sha256.Sum256([]byte(body))
	return sumLead + hex.EncodeToString(s[:]) + "\n"
}

// parse reads a whole file; nil is an empty one.
func (f *File) parse(data []byte) ([]bawn.Rule, error) {
	if data == nil {
		return nil, nil
	}
	body, ok := strings.CutPrefix(string(data), head)
	line, body, _ := strings.Cut(body, "\n")
	if !ok || line+"\n" != sum(body) {
		return nil, &TamperedError{f.path, "it is not as Bawn wrote it: its sum is another"}
	}
	rules, err := policy.ParseFile(f.path, []byte(body), bawn.User)
	if err != nil {
		return nil, &TamperedError{f.path, err.Error()}
	}
	for _, r := range rules {
		if !strings.HasPrefix(r.ID, policy.Approved) {
			return nil, &TamperedError{f.path, fmt.Sprintf("the rule %q is not one that an answer makes", r.ID)}
		}
	}
	return rules, nil
}

func text(rules []bawn.Rule) []byte {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString("\n")
		importer.WriteRule(&b, r)
	}
	return []byte(head + sum(b.String()) + b.String())
}

// Add keeps rules and returns them as they are kept: with identities of this
// file, as the user's, and with who answered and when as their reason. A rule
// about the same takes the place of an earlier one.
func (f *File) Add(rules []bawn.Rule, by string, at time.Time) ([]bawn.Rule, error) {
	kept := make([]bawn.Rule, len(rules))
	for i, r := range rules {
		r.ID, r.Source = identity(r), bawn.User
		r.Reason = fmt.Sprintf("answered %q by %s on %s", word(r.Verdict), printable(by), at.UTC().Format(time.DateOnly))
		if err := policy.Check(r); err != nil {
			return nil, fmt.Errorf("keep the rule: %w", err)
		}
		kept[i] = r
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, fmt.Errorf("keep the rule: %w", err)
	}
	err := f.update(func(old []bawn.Rule) ([]bawn.Rule, error) {
		all := slices.DeleteFunc(old, func(o bawn.Rule) bool { return slices.ContainsFunc(kept, func(k bawn.Rule) bool { return same(o, k) }) })
		all = slices.Concat(all, kept)
		if len(all) > MaxRules {
			return nil, fmt.Errorf("there are %d approved rules; want at most %d: \"bawn policy approved\" lists and removes", len(all), MaxRules)
		}
		return all, nil
	})
	return kept, err
}

// Forget removes the rules whose identities begin with prefix, and says how
// many those were.
func (f *File) Forget(prefix string) (n int, err error) {
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	err = f.update(func(old []bawn.Rule) ([]bawn.Rule, error) {
		left := slices.DeleteFunc(slices.Clone(old), func(r bawn.Rule) bool { return strings.HasPrefix(r.ID, prefix) })
		n = len(old) - len(left)
		return left, nil
	})
	return n, err
}

// Clear makes the file one without rules, whatever it holds.
func (f *File) Clear() error {
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return atomicfile.Write(f.path, text(nil), 0o600)
}

func (f *File) update(edit func([]bawn.Rule) ([]bawn.Rule, error)) error {
	return atomicfile.Update(f.path, 0o600, maxFile, func(data []byte) ([]byte, error) {
		old, err := f.parse(data)
		if err != nil {
			return nil, err
		}
		rules, err := edit(old)
		if err != nil {
			return nil, err
		}
		out := text(rules)
		if back, err := f.parse(out); err != nil || len(back) != len(rules) {
			return nil, errors.Join(errors.New("the rule can't be written so that it is read as the same"), err)
		}
		return out, nil
	})
}

// same reports whether two rules are about the same.
func same(a, b bawn.Rule) bool {
	return a.Kind == b.Kind && a.Pattern == b.Pattern && slices.Equal(a.Operations, b.Operations)
}

// identity is the same for rules about the same, whatever they say of it.
func identity(r bawn.Rule) string {
	s := sha256.Sum256(fmt.Appendf(nil, "%v %v %q", r.Kind, r.Operations, r.Pattern))
	return policy.Approved + hex.EncodeToString(s[:5])
}

func word(v bawn.Verdict) string {
	if v == bawn.Allow {
		return "always"
	}
	return "never"
}

// printable keeps a name short and plain.
func printable(by string) string {
	keep := func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}
	const longest = 60
	by = strings.Map(keep, by)
	return by[:min(len(by), longest)]
}
