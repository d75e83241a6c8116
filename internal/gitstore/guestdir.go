package gitstore

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/sealed"
)

// guestName is the sealed directory in a session's place that holds everything the
// guest writes.
const guestName = "guest"

// Names in the guest's directory.
const (
	privateName = "private"  // the private git directory
	madeName    = "made"     // those of repositories that the guest makes
	endedName   = "removing" // the private one, once everything in it is published
)

// A guestDir is what one session's guest writes. The guest chooses hooks, file
// system monitors and filters there, so no git of the human's may reach it. It
// lies behind a seal (package sealed), and is open here.
type guestDir struct {
	f    *os.File
	path string // the real path, for other processes to mount
}

// newGuestDir makes the directory in a session's place.
func newGuestDir(place string) (*guestDir, error) {
	f, err := sealed.Create(filepath.Join(place, guestName))
	if err != nil {
		return nil, err
	}
	g := &guestDir{f, guestPath(place)}
	if err := os.Mkdir(g.at(madeName), 0o700); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return g, nil
}

// guestPath is where the guest's directory of a session's place is.
func guestPath(place string) string { return sealed.Inside(filepath.Join(place, guestName)) }

// openGuestDir opens the guest's directory at guestPath. The caller closes it.
func openGuestDir(path string) (*guestDir, error) {
	f, err := sealed.Reach(path)
	if err != nil {
		return nil, err
	}
	return &guestDir{f, path}, nil
}

// at is where this process finds names in the directory.
func (g *guestDir) at(names ...string) string { return sealed.Path(g.f, names...) }

// real is the path of names in the directory for a process that mounts them.
func (g *guestDir) real(names ...string) string {
	return filepath.Join(append([]string{g.path}, names...)...)
}

// close may be called for nil.
func (g *guestDir) close() {
	if g != nil {
		g.f.Close()
	}
}

// removePlace removes a session's place, and leaves g open. The seal stays shut until
// everything behind it is removed. If g is nil, because the guest's directory can't
// be opened, the seal is opened first.
func removePlace(dir string, g *guestDir) error {
	var err error
	if g != nil {
		// In one step: Recover would take a half-removed directory for one in which the
		// guest has deleted refs.
		if err = os.Rename(g.at(privateName), g.at(endedName)); missing(err) {
			err = nil
		}
		err = errors.Join(err, removeAll(g.at(endedName)), removeAll(g.at(madeName)))
	}
	return errors.Join(err, sealed.Remove(filepath.Join(dir, guestName)), removeAll(dir))
}
