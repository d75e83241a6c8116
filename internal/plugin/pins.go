package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// maxPins bounds a file of pins, in bytes.
const maxPins = 4 << 20

// A Pin is one tool that a human has agreed to.
type Pin struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Pins are a human's agreement to one plugin. Nil Tools pin nothing: whatever
// is listed is new.
type Pins struct {
	Plugin       string `json:"plugin"`
	Instructions string `json:"instructions"` // Digest of the server's text for the model at the start, or ""
	Tools        []Pin  `json:"tools"`
}

// A Difference is the difference between a listing and the pins.
type Difference string

// Differences. New, Changed and Gone ask; the others are refused.
const (
	New        Difference = "new"
	Changed    Difference = "changed"
	Gone       Difference = "gone"
	Shadowing  Difference = "shadowing"  // another plugin has a tool of this name
	Confusable Difference = "confusable" // it looks like another tool's name
	Unfit      Difference = "unfit"      // the name or the text is not fit to be shown to anybody
)

// A Change is one tool that is not as it was pinned.
type Change struct {
	Tool       string
	Difference Difference
	Digest     string // of the tool as it is listed, "" if it is not listed
	Why        string // for people
}

// Refused reports whether the tool is not offered, even if the user agrees.
func (c Change) Refused() bool {
	return c.Difference != New && c.Difference != Changed && c.Difference != Gone
}

// LoadPins reads the pins of a plugin from a directory of Bawn's own; without a
// file they are empty. A file that can't be understood in full is an error.
func LoadPins(dir, plugin string) (Pins, error) {
	p := Pins{Plugin: plugin}
	if err := CheckPlugin(plugin); err != nil {
		return p, err
	}
	name := filepath.Join(dir, plugin+".json")
	text, err := atomicfile.Read(name, maxPins)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if p, err = parsePins(text); err == nil && p.Plugin != plugin {
		err = fmt.Errorf("they are of the plugin %q", p.Plugin)
	}
	if err != nil {
		return Pins{Plugin: plugin}, fmt.Errorf("%q holds no pins: %w; remove it and pin anew", name, err)
	}
	return p, nil
}

// Save replaces the pins of a plugin, for its owner only.
func (p Pins) Save(dir string) error {
	if err := CheckPlugin(p.Plugin); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, p.Plugin+".json"), append(text, '\n'), 0o600)
}

// RemovePins forgets the pins of a plugin; a plugin without pins is not an error.
func RemovePins(dir, plugin string) error {
	if err := CheckPlugin(plugin); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(dir, plugin+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, forget(dir, plugin), forgetKept(dir, plugin))
}

// Pinned pins what is listed. A tool that Compare refuses is not pinned.
func Pinned(plugin, instructions string, listed []Tool) Pins {
	p := Pins{Plugin: plugin, Instructions: DigestText(instructions), Tools: []Pin{}}
	refused := map[string]bool{}
	for _, c := range Compare(Pins{}, listed) {
		refused[c.Tool] = refused[c.Tool] || c.Refused()
	}
	for _, t := range listed {
		if digest, err := Digest(t); err == nil && !refused[t.Name] {
			p.Tools = append(p.Tools, Pin{t.Name, digest})
		}
	}
	return p
}

func (p Pins) digest(tool string) (string, bool) {
	i := slices.IndexFunc(p.Tools, func(t Pin) bool { return t.Name == tool })
	if i < 0 {
		return "", false
	}
	return p.Tools[i].Digest, true
}
