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
)

// Check looks whether this machine has what the configuration names, so that
// a mistake is found with its place and not in the middle of a start: paths
// that are to be shown exist, devices are devices, credentials are among the
// names that known returns. The error is of type Errors.
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
		errs.take(e.at, checkDevice("/dev", e))
	}
	slices.SortStableFunc(errs, func(x, y *Error) int {
		return cmp.Or(cmp.Compare(x.Place.File, y.Place.File), cmp.Compare(x.Place.Line, y.Place.Line), cmp.Compare(x.Place.Column, y.Place.Column))
	})
	return errs.err()
}

func checkPath(path string, r reach) error {
	_, err := os.Stat(path)
	switch {
	case path == "/" && r.access == bawn.ReadWrite:
		return &Error{Place: r.at, Problem: "the whole file system can't be writable; want the directories that are needed"}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Place: r.at, Problem: fmt.Sprintf("path %s does not exist", quote(path)), Hint: fmt.Sprintf("create it first (mkdir -p %s), or leave it out", shellWord(path))}
	case err != nil:
		return &Error{Place: r.at, Problem: fmt.Sprintf("path %s can't be shown to a session: %v", quote(path), errors.Unwrap(err))}
	}
	return nil
}

// checkDevice looks for a device below dir.
func checkDevice(dir string, e entry) error {
	info, err := os.Stat(filepath.Join(dir, e.text))
	if err == nil && info.Mode()&fs.ModeDevice != 0 {
		return nil
	}
	what := "does not exist"
	if err == nil {
		what = "is no device"
	}
	names := devicesOf(dir)
	hint := didYouMean(e.text, names)
	if hint == "" {
		hint = "\"ls -l " + dir + "\" shows more"
	}
	return &Error{Place: e.at, Problem: fmt.Sprintf("device %s %s below %s; want one of %s", quote(e.text), what, dir, someOf(names)), Hint: hint}
}

// Devices lists the names that isolation.devices may have on this machine.
func Devices() []string { return devicesOf("/dev") }

// devicesOf lists the devices of dir and of its directories that somebody may
// want; terminals, loop devices and the like come by the dozen and are left out.
func devicesOf(dir string) []string {
	var names []string
	for _, pattern := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is a good one
		for _, name := range found {
			info, err := os.Lstat(name)
			rel := strings.TrimPrefix(name, dir+"/")
			dozen := rel != strings.TrimRight(rel, "0123456789") && !strings.Contains(rel, "/")
			if err == nil && info.Mode()&fs.ModeDevice != 0 && !dozen && !strings.HasPrefix(rel, "pts/") {
				names = append(names, rel)
			}
		}
	}
	return names
}

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
