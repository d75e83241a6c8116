package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// A HookTable says which actions a plugin of the kind Hook is told of, and how
// long it may think about one. A zero member stands for that of DefaultHook.
type HookTable struct {
	Kinds   []bawn.Kind // Command, Filesystem or Tool
	Seconds int         // 1 to 60
}

// DefaultHook counts where a manifest states nothing.
var DefaultHook = HookTable{Kinds: []bawn.Kind{bawn.Command, bawn.Tool}, Seconds: 5}

// Filled puts the defaults where nothing is stated.
func (h HookTable) Filled() HookTable {
	d := DefaultHook
	if len(h.Kinds) > 0 {
		d.Kinds = h.Kinds
	}
	pick(&d.Seconds, h.Seconds)
	return d
}

// Patience is how long the plugin may think about one action.
func (h HookTable) Patience() time.Duration { return time.Duration(h.Filled().Seconds) * time.Second }

// hookTable is it as it is written.
type hookTable struct {
	Kinds   *[]string `toml:"kinds,omitempty"`
	Seconds *int64    `toml:"seconds,omitempty"`
}

func (h HookTable) document() hookTable {
	d := hookTable{Seconds: stated(int64(h.Seconds))}
	for _, k := range h.Kinds {
		if d.Kinds == nil {
			d.Kinds = &[]string{}
		}
		*d.Kinds = append(*d.Kinds, k.String())
	}
	return d
}

// statedKind is the kind where it is not the one that is meant without.
func (m *Manifest) statedKind() string {
	if m.Kind == Server {
		return ""
	}
	return m.Kind
}

// hook reads the table, and wants nothing of a server's beside it.
func (c *checker) hook(d hookTable) {
	if d.Seconds != nil {
		c.m.Hook.Seconds = int(between(c, "hook.seconds", *d.Seconds, 1, 60))
	}
	if d.Kinds != nil {
		c.hookKinds(*d.Kinds)
	}
	t := c.m.Tools
	switch {
	case c.m.Kind != Hook && (d.Kinds != nil || d.Seconds != nil):
		c.refuse("hook", "this is no hook; want kind = %q", Hook)
	case c.m.Kind == Hook && len(t.Allow)+len(t.Ask)+len(t.Deny) > 0:
		c.refuse("tools", "a hook has no tools; want this table in a server's manifest only")
	case c.m.Kind == Hook && len(c.m.Arguments) > 0:
		c.refuse("arguments", "a hook has no tools; want this table in a server's manifest only")
	}
}

func (c *checker) hookKinds(names []string) {
	if len(names) == 0 {
		c.refuse("hook.kinds", "it is empty; want some of \"command\", \"filesystem\" and \"tool\"")
	}
	for _, name := range names {
		var k bawn.Kind
		switch err := k.UnmarshalText([]byte(name)); {
		case k == bawn.Network:
			c.refuse("hook.kinds", "connections are decided in the relay, which asks no hook; want \"command\", \"filesystem\" or \"tool\"")
		case err != nil || slices.Contains(c.m.Hook.Kinds, k):
			c.refuse("hook.kinds", "%+q is unknown, or there twice; want \"command\", \"filesystem\" or \"tool\"", cut(name))
		default:
			c.m.Hook.Kinds = append(c.m.Hook.Kinds, k)
		}
	}
}

// hookWords describe a hook's input and rights.
func (m *Manifest) hookWords() string {
	h := m.Hook.Filled()
	words := map[bawn.Kind]string{bawn.Command: "command", bawn.Filesystem: "use of a file that is judged", bawn.Tool: "tool call"}
	var told []string
	for _, k := range h.Kinds {
		told = append(told, words[k])
	}
	last := len(told) - 1
	list := told[last]
	if last > 0 {
		list = strings.Join(told[:last], ", ") + " and " + list
	}
	return fmt.Sprintf("is told of every %s, with all of its words, and can have them asked about or denied, never allowed; what it does not answer in %d s is denied", list, h.Seconds)
}

// Hooks reads the manifests of a directory that are of the kind Hook, by name.
// A manifest that can't be read and may be a hook's is an error: its objections
// are unknown.
func Hooks(dir string) ([]*Manifest, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []*Manifest
	errs := []error{err}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".toml")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		m, err := readHook(dir, name)
		if errs = append(errs, err); m != nil {
			all = append(all, m)
		}
	}
	if len(all) > maxHooks {
		errs = append(errs, fmt.Errorf("%q holds %d hooks; want at most %d", dir, len(all), maxHooks))
	}
	return all, errors.Join(errs...)
}

// maxHooks bounds how many are asked about one action.
const maxHooks = 16

// readHook returns nil for a file that is surely no hook.
func readHook(dir, name string) (*Manifest, error) {
	file := filepath.Join(dir, name+".toml")
	text, err := atomicfile.Read(file, maxManifest)
	if err != nil {
		return nil, err
	}
	var d struct{ Kind string }
	if toml.Unmarshal(text, &d) == nil && d.Kind != Hook {
		return nil, nil
	}
	m, err := Parse(file, name, text)
	if err != nil || m.Kind != Hook {
		return nil, err
	}
	return m, nil
}
