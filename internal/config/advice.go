package config

import (
	"fmt"
	"path/filepath"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// WriteAdvice says what a user would change so that a session may write path,
// which is absolute and free of symbolic links. The advice is a further --rw
// for place (path or a directory above it), or the setting that closes it. The
// advice was tried on a copy of the configuration. It returns "" where nothing
// of the configuration keeps the path from being written.
func (c *Config) WriteAdvice(path, place string) string {
	if c.gives(path) == bawn.ReadWrite {
		return ""
	}
	open, err := c.with("--rw", "isolation.rw", setting{items: []item{{place, flagPlace("--rw")}}})
	if err == nil && open.gives(path) == bawn.ReadWrite {
		return "start the session with --rw " + shellWord(place)
	}
	if c.Mode == bawn.ModePlan {
		return c.modeAdvice(path, open)
	}
	if err != nil {
		return err.Error()
	}
	return c.closedBy(path, "written")
}

// ReadAdvice is WriteAdvice for reading a path, with place as a further --ro.
func (c *Config) ReadAdvice(path, place string) string {
	if c.gives(path) != bawn.Hidden {
		return ""
	}
	open, err := c.with("--ro", "isolation.ro", setting{items: []item{{place, flagPlace("--ro")}}})
	if err == nil && open.gives(path) != bawn.Hidden {
		return "start the session with --ro " + shellWord(place)
	}
	if err != nil {
		return err.Error()
	}
	return c.closedBy(path, "read")
}

// Hides reports whether the configuration hides a path, and the place with which it does.
func (c *Config) Hides(path string) (place string, hidden bool) {
	place, by := c.cover(path)
	return place, by.access == bawn.Hidden
}

// with returns a copy of the configuration with one more flag.
func (c *Config) with(flag, path string, s setting) (*Config, error) {
	st := c.st.clone()
	s.key, s.at = find(path), flagPlace(flag)
	if err := st.apply(s, authority{layer: Command}); err != nil {
		return c, err
	}
	st.closeHome()
	changed := *c
	changed.st, changed.Mode = st, modeNamed(st.scalars["mode"].value)
	return &changed, nil
}

// modeAdvice is what to do where the mode lets a session write nothing.
func (c *Config) modeAdvice(path string, open *Config) string {
	mode := c.st.scalars["mode"]
	because := fmt.Sprintf("mode \"plan\" (%s) lets a session write nothing", mode.at)
	free, err := open.with("--mode", "mode", setting{value: bawn.ModeNormal.String()})
	switch {
	case err != nil:
		return fmt.Sprintf("%s, and %v", because, err)
	case free.gives(path) == bawn.ReadWrite && c.opens(path):
		return because + "; start it with --mode normal"
	case free.gives(path) == bawn.ReadWrite:
		return because + "; start it with --mode normal and --rw for this place"
	}
	return because
}

// opens reports whether the path could be written but for the mode.
func (c *Config) opens(path string) bool {
	free := *c
	free.Mode = bawn.ModeNormal
	return free.gives(path) == bawn.ReadWrite
}

// closedBy names the entry that decides on a path, which keeps it from being done so.
func (c *Config) closedBy(path, done string) string {
	at, entry := c.cover(path)
	by := entry.at
	switch {
	case entry.at == (Place{}):
		return ""
	case by.Layer == Command && by.Via[0] == '-':
		return fmt.Sprintf("%s keeps %s from being %s; leave it out", by.Via, shellWord(at), done)
	case by.Via != "":
		return fmt.Sprintf("%s keeps %s from being %s; choose another with --profile", by.why(), shellWord(at), done)
	}
	return fmt.Sprintf("%s keeps %s from being %s; change that line", by, shellWord(at), done)
}

// gives returns a session's access to a path, symbolic links in the
// configuration's own paths resolved.
func (c *Config) gives(path string) bawn.Access {
	_, r := c.cover(path)
	if c.Mode == bawn.ModePlan {
		return min(r.access, bawn.ReadOnly)
	}
	return r.access
}

// cover returns the entry that decides on a path: the longest that holds it.
func (c *Config) cover(path string) (at string, by reach) {
	by.access = bawn.ReadOnly
	for p, r := range c.effective() {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		if fspath.Below(path, p) && (len(p) > len(at) || len(p) == len(at) && r.access < by.access) {
			at, by = p, r
		}
	}
	return at, by
}
