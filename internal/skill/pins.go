package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// Rules counts the changes of what strict refuses. A pin of older rules holds
// no more: what it stands for is checked again.
const Rules = 2

// Pins are the items that a human has seen, by their digests. The zero Pins
// holds none.
type Pins struct{ list []Pin }

// A Pin is one of them.
type Pin struct {
	Kind   Kind      `json:"kind"`
	Name   string    `json:"name"`
	Path   string    `json:"path"` // where it was seen, absolute
	Digest string    `json:"digest"`
	Rules  int       `json:"rules"` // that it was checked by
	At     time.Time `json:"at"`
	By     string    `json:"by"` // who said so: "terminal", "bawn skill pin"
}

// A State says how an item stands to the pins. The zero State is New.
type State uint8

const (
	New     State = iota // nothing of this path and name was seen
	Changed              // something else was seen at this path
	Pinned               // exactly this was seen, here or elsewhere
)

var stateNames = []string{"new", "changed", "pinned"}

// String returns the state's name; what is no state reads "new".
func (s State) String() string {
	if s > Pinned {
		return "new"
	}
	return stateNames[s]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts exactly the three names; otherwise s becomes New.
func (s *State) UnmarshalText(text []byte) error {
	*s = New
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("state %q is invalid; want new, changed or pinned", text)
}

// maxPins is how many are kept, and maxPinFile the largest file in bytes.
const (
	maxPins    = 10000
	maxPinFile = 8 << 20
)

// LoadPins reads a file of pins; a missing one holds none. A file that can't be
// understood is an error, with which nothing is pinned.
func LoadPins(path string) (*Pins, error) {
	data, err := atomicfile.Read(path, maxPinFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &Pins{}, nil
	}
	if err != nil {
		return &Pins{}, fmt.Errorf("read which skills are pinned: %w", err)
	}
	list, err := parsePins(data)
	if err != nil {
		return &Pins{}, fmt.Errorf("%s: %w; move the file away to pin anew", path, err)
	}
	return &Pins{list: list}, nil
}

func parsePins(data []byte) ([]Pin, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var list []Pin
	if err := strictjson.Decode(data, &list); err != nil {
		return nil, err
	}
	for _, p := range list {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *Pin) check() error {
	if p.Kind.String() == "invalid" || p.Name == "" || !filepath.IsAbs(p.Path) || !sound(p.Digest) {
		return fmt.Errorf("the pin of %q is not one that was written here", p.Path)
	}
	return nil
}

// sound reports whether a digest is in the one form that they have.
func sound(digest string) bool {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// All lists the pins, sorted by path.
func (p *Pins) All() []Pin { return slices.Clone(p.list) }

// State says how an item stands. One with a fault is never pinned.
func (p *Pins) State(i Item) State {
	state := New
	for _, pin := range p.list {
		switch {
		case i.Fault == nil && pin.is(i):
			return Pinned
		case pin.Path == i.Path && pin.Kind == i.Kind:
			state = Changed
		}
	}
	return state
}

// is reports whether the pin is for exactly this. Where it lies does not
// matter: another working tree of a project has the same.
func (p *Pin) is(i Item) bool {
	return sound(i.Digest) && p.Digest == i.Digest && p.Kind == i.Kind && p.Name == i.Name && p.Rules == Rules
}

// Keep pins items in the file at path, in place of what was pinned at theirs.
// One that has a fault is an error, and nothing is kept.
func Keep(path, by string, now time.Time, items ...Item) error {
	return edit(path, func(list []Pin) ([]Pin, error) {
		for _, i := range items {
			if i.Fault != nil || !sound(i.Digest) {
				return nil, fmt.Errorf("%q has no digest; it can't be pinned", i.Path)
			}
			list = slices.DeleteFunc(list, func(p Pin) bool { return p.Path == i.Path && p.Kind == i.Kind })
			list = append(list, Pin{Kind: i.Kind, Name: i.Name, Path: i.Path, Digest: i.Digest, Rules: Rules, At: now.UTC().Truncate(time.Second), By: by})
		}
		if len(list) > maxPins {
			return nil, fmt.Errorf("%d pins; want at most %d: remove some with \"bawn skill rm\"", len(list), maxPins)
		}
		return list, nil
	})
}

// Remove ends the pins for which gone reports true, and returns them.
func Remove(path string, gone func(Pin) bool) (removed []Pin, err error) {
	err = edit(path, func(list []Pin) ([]Pin, error) {
		return slices.DeleteFunc(list, func(p Pin) bool {
			if gone(p) {
				removed = append(removed, p)
				return true
			}
			return false
		}), nil
	})
	return removed, err
}

// edit replaces the pins of a file.
func edit(path string, f func([]Pin) ([]Pin, error)) error {
	return atomicfile.Update(path, 0o600, maxPinFile, func(old []byte) ([]byte, error) {
		list, err := parsePins(old)
		if err == nil {
			list, err = f(list)
		}
		if err != nil {
			return nil, fmt.Errorf("pin skills in %q: %w", path, err)
		}
		slices.SortStableFunc(list, func(a, b Pin) int { return strings.Compare(a.Path, b.Path) })
		data, err := json.MarshalIndent(list, "", "  ")
		return append(data, '\n'), err
	})
}
