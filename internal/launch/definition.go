package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/config"
	sessions "github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// maxDefinition bounds a definition file, in bytes.
const maxDefinition = 1 << 20

// define gives a session the meet of what its definition file (--as) asks for and
// what the session has without the file. So the file's author need not be
// trusted.
func (u *setup) define() error {
	e, l, s := u.env, u.Launch, u.asked
	if l.As == "" {
		return nil
	}
	text, err := l.readDefinition(u.workspace)
	if err != nil {
		return verb.Usage("name a file in TOML, with the keys of the configuration", "--as %q: %v", l.As, err)
	}
	in, err := settings.ConfigInputs(&e.World, u.workspace, l.Flags)
	if err != nil {
		return err
	}
	in.Agent, in.Definition = u.Known.profileOf(), &config.Definition{File: l.As, Text: text}
	c, err := config.Load(in)
	if err != nil {
		return settings.ConfigError(err)
	}
	sees := all
	if l.Parent != nil {
		sees = l.Parent.Sees
	}
	wanted := s
	wanted.ID, wanted.Mode, wanted.Autonomy, wanted.Isolation = NewSessionID(), c.Mode, c.Autonomy, sessions.Led(c.Isolation(u.workspace), sees)
	if c.Agent != "" {
		wanted.Agent = c.Agent
	}
	base := s
	base.Isolation = sessions.Led(base.Isolation, sees)
	given, narrowed, err := sessions.Meet(base, wanted)
	if err != nil {
		return verb.Usage("mend the definition", "--as %q: %v", l.As, err)
	}
	l.sayNarrowed(e, narrowed)
	given.ID, given.Parent = s.ID, s.Parent
	u.defined, u.asked = c, given
	return nil
}

// readDefinition reads a definition file. A guest's lies in the workspace, where
// the guest sees it, and no link leads out of it.
func (l *Launch) readDefinition(workspace string) ([]byte, error) {
	if l.Parent == nil {
		return readRegular(os.OpenFile(l.As, os.O_RDONLY|atomicfile.NonBlock, 0))
	}
	rel, err := filepath.Rel(workspace, l.As)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, errors.New("it is outside of the workspace")
	}
	no := errors.New("it is no file of the workspace that can be read")
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, no
	}
	defer root.Close()
	file, err := root.OpenFile(rel, os.O_RDONLY|atomicfile.NonBlock, 0)
	if err != nil {
		return nil, no
	}
	// Errors quote the file: one that the guest does not see is not read. It is
	// asked of the open file, which no link changes any more.
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil || !l.Parent.Sees(real) {
		return nil, errors.Join(no, file.Close())
	}
	return readRegular(file, nil)
}

func readRegular(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDefinition+1))
	if err == nil && len(text) > maxDefinition {
		return nil, fmt.Errorf("it is longer than %d bytes", maxDefinition)
	}
	return text, err
}

// narrower applies a definition's lists beside the isolation.
func (u *setup) narrower(open, protected []string) (opened, kept []string) {
	if u.defined == nil {
		return open, protected
	}
	opened = slices.DeleteFunc(slices.Clone(open), func(name string) bool { return !slices.Contains(u.defined.Open, name) })
	kept = slices.Clone(protected)
	for _, name := range u.defined.Protected {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return opened, kept
}
