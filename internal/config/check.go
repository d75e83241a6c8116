package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/devices"
)

// Check tests whether this machine has what the configuration names, so that a
// mistake is reported with its place before the start. Shown paths must exist,
// devices must be devices, and credentials must be among the names that known
// returns. The error is of type Errors.
func (c *Config) Check(known func() []string) error {
	var errs Errors
	reaches := c.effective()
	for _, path := range slices.Sorted(maps.Keys(reaches)) {
		if r := reaches[path]; r.access != bawn.Hidden && r.at != (Place{}) {
			errs.take(r.at, checkPath(path, r))
		}
	}
	for _, e := range c.st.lists["isolation.open"] {
		if names := known(); !strings.HasPrefix(e.text, "/") && !slices.Contains(names, e.text) {
			errs.add(&Error{Place: e.at, Problem: fmt.Sprintf("%s is no known credential; want a path or one of %s", quote(e.text), strings.Join(names, ", ")),
				Hint: didYouMean(e.text, names)})
		}
	}
	for _, e := range c.st.lists["isolation.devices"] {
		errs.take(e.at, checkDevice(devices.Dir, e))
	}
	for _, key := range []string{"isolation.runsc", dockerTable + "host"} {
		errs.take(c.st.scalars[key].at, c.checkTrusted(key))
	}
	slices.SortStableFunc(errs, func(x, y *Error) int {
		return cmp.Or(cmp.Compare(x.Place.File, y.Place.File), cmp.Compare(x.Place.Line, y.Place.Line), cmp.Compare(x.Place.Column, y.Place.Column))
	})
	return errs.err()
}

// checkTrusted refuses programs and files that the host's side trusts where a
// session could replace them, also by way of a link.
func (c *Config) checkTrusted(key string) error {
	path := c.st.text(key)
	if path == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // a provider that needs the path reports that it does not exist
	}
	for _, p := range []string{path, real} {
		if c.st.access(p) == bawn.ReadWrite {
			return fmt.Errorf("%s is %s, which a session can write; want a place outside of the workspace and of isolation.rw", key, quote(p))
		}
	}
	return nil
}

func checkPath(path string, r reach) error {
	_, err := os.Stat(path)
	switch {
	case path == "/" && r.access == bawn.ReadWrite:
		return &Error{Place: r.at, Problem: "the whole file system can't be writable; want the directories that are needed"}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Place: r.at, Problem: fmt.Sprintf("path %s does not exist", quote(path)), Hint: createFirst(path)}
	case err != nil:
		return &Error{Place: r.at, Problem: fmt.Sprintf("path %s can't be shown to a session: %v", quote(path), errors.Unwrap(err))}
	}
	return nil
}

// createFirst says how to make a missing file. A name with an extension is
// likely to be a file, another a directory.
func createFirst(path string) string {
	word := shellWord(path)
	if filepath.Ext(strings.TrimLeft(filepath.Base(path), ".")) == "" {
		return fmt.Sprintf("create it first (mkdir -p %s), or leave it out", word)
	}
	return fmt.Sprintf("create it first (mkdir -p %s && touch %s, or mkdir -p %s for a directory), or leave it out", shellWord(filepath.Dir(path)), word, word)
}

// checkDevice looks for a device, or a group of them, below dir.
func checkDevice(dir string, e entry) error {
	err := devices.Check(dir, e.text)
	var wrong *devices.Error
	if !errors.As(err, &wrong) {
		return err
	}
	hint := didYouMean(e.text, wrong.Have)
	if hint == "" {
		hint = "\"gpu\" and \"nvidia\" stand for all of theirs; disks, memory, terminals, keyboards and their like are never given"
	}
	return &Error{Place: e.at, Problem: fmt.Sprintf("device %s %s; want one of %s", quote(e.text), wrong.Why, someOf(wrong.Have)), Hint: hint}
}

// Devices lists the names that isolation.devices may have on this machine.
func Devices() []string { return devices.Available(devices.Dir) }

// someOf lists names, and how many more there are.
func someOf(names []string) string {
	const most = 24
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// shellWord writes a path so that a shell takes it for one word.
func shellWord(path string) string {
	if only(path, func(c byte) bool { return alnum(c) || upper(c) || strings.IndexByte("/._-+,@%", c) >= 0 }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
