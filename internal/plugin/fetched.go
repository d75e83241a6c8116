package plugin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// mark is the file that says what of a plugin has been fetched. It lies where no
// guest writes: removing it would open the registry again.
func (d Dirs) mark(m *Manifest) string { return filepath.Join(d.Pins, m.Name+".fetched") }

// spec is what is fetched.
func (m *Manifest) spec() string { return strings.Join(m.Argv(), "\x00") }

// Complete reports whether the plugin's program is there and needs no registry:
// nothing fetches it, or SetComplete was called for exactly this.
func (d Dirs) Complete(m *Manifest) bool {
	if !m.Fetched() {
		return true
	}
	text, err := os.ReadFile(d.mark(m))
	return err == nil && string(text) == m.spec()
}

// SetComplete notes that the plugin has run with its downloads.
func (d Dirs) SetComplete(m *Manifest) error {
	if !m.Fetched() {
		return nil
	}
	if err := os.MkdirAll(d.Pins, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(d.mark(m), []byte(m.spec()), 0o600)
}

// forget removes what SetComplete has noted.
func forget(dir, plugin string) error {
	err := os.Remove(filepath.Join(dir, plugin+".fetched"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
