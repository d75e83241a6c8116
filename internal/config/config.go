// Package config turns configuration files and flags into the isolation of a
// session.
//
// The layers are built-in, managed, user, project, flags; a later one wins.
// The managed file may pin keys against everybody after it. A project's file
// may only narrow, unless the user trusted exactly its bytes. A file that does
// not exist is no error; one that can't be understood in full is.
package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/fspath/links"
)

// ManagedFile is the configuration of who manages the machine.
const ManagedFile = "/etc/bawn/config.toml"

// Inputs are all that a configuration depends on.
type Inputs struct {
	Workspace     string   // absolute; relative paths in files and flags start here
	Home          string   // absolute; what ~ means
	XDGConfigHome string   // or "" for ~/.config
	XDGStateHome  string   // or "" for ~/.local/state
	XDGCacheHome  string   // or "" for ~/.cache
	ManagedPath   string   // or "" for ManagedFile
	UserPath      string   // or "" for bawn/config.toml in XDGConfigHome
	Tools         []string // directories of programs that a closed home also shows, absolute
	Flags         Flags
	Machine       Machine
	// Definition is applied above all else, as if it were trusted: the caller
	// takes the meet of the results with and without it. Nil for none.
	Definition *Definition
	Agent      *AgentProfile // of the agent that the session starts, or nil
}

// A Definition is a file with a session's request.
type Definition struct {
	File string // its name, for errors
	Text []byte
}

// A Config is the effective configuration. It does not change once loaded.
type Config struct {
	Mode     bawn.Mode
	Autonomy bawn.Autonomy
	Agent    string
	Provider string // one of Providers; "" lets Bawn pick
	Profile  string
	// Open names the credentials whose read is opened again: absolute paths,
	// which are mounts of the Isolation too, and names such as "gh". A path
	// that is a read-write mount is opened as well.
	Open      []string
	Protected []string // names protected beside the built-in ones

	st *state
}

// The key by which a sandbox counts for nothing in decisions, and its strict value.
const (
	containedKey = "policy.contained"
	decides      = "decide"
)

// Decides reports whether commands in a sandbox are decided as without one.
func (c *Config) Decides() bool { return c.st != nil && c.st.scalars[containedKey].value == decides }

// An Origin is one effective value and where it came from. A list has one
// Origin for each entry.
type Origin struct {
	Key   string `json:"key"`
	Value any    `json:"value"`           // string, bool, int64 or float64
	Entry bool   `json:"entry,omitempty"` // one of a list
	Place
}

// Load reads the layers and returns their result. The error is of type Errors;
// nothing half-valid is ever returned with it.
func Load(in Inputs) (*Config, error) {
	st, err := in.before()
	if err != nil {
		return nil, err
	}
	if in.Flags.NoAgentProfile {
		in.Agent = nil // pinned keys say so below
	}
	if err := st.agent(in.Agent); err != nil {
		return nil, err
	}
	if st, err = in.project(st); err != nil {
		return nil, err
	}
	flags, err := in.Flags.settings(st.paths)
	if err != nil {
		return nil, err
	}
	st.sealed = in.Flags.Only
	if err := st.layer(flags, authority{layer: Command}); err != nil {
		return nil, err
	}
	if in.Flags.Only {
		st.only()
	}
	if d := in.Definition; d != nil {
		at := Place{Layer: Command, File: d.File}
		if err := st.file(d.Text, at, authority{layer: Command}); err != nil {
			return nil, asErrors(at, err)
		}
	}
	for _, err := range []error{st.unheard(in.Flags), st.unsplit(in.Flags), st.closedNetwork()} {
		if err != nil {
			return nil, err
		}
	}
	st.yield()
	st.closeHome()
	return st.config()
}

// before returns the state below the project's file.
func (in Inputs) before() (*state, error) {
	p, err := in.paths()
	if err != nil {
		return nil, Errors{{Problem: err.Error(), Hint: "change to a project's directory, or name one with --cwd"}}
	}
	if in.Machine.MemoryMB <= 0 {
		return nil, Errors{{Problem: fmt.Sprintf("the machine's memory is %d MiB; want what the default limits can be measured by", in.Machine.MemoryMB)}}
	}
	st := newState(in.Machine, p)
	for _, f := range []Place{{Layer: Managed, File: in.managed()}, {Layer: User, File: in.User()}} {
		data, err := readTrusted(f.File)
		if err == nil && data != nil {
			err = st.file(data, f, authority{layer: f.Layer})
		}
		if err != nil {
			return nil, asErrors(f, err)
		}
	}
	return st, nil
}

// file applies the text of one file.
func (st *state) file(data []byte, in Place, a authority) error {
	f, err := parse(data, in, st.paths)
	if err != nil {
		return err
	}
	return st.layer(f, a)
}

// project applies the project's file: as one that may only narrow, or, if it
// wants more and is trusted, as it is.
func (in Inputs) project(st *state) (*state, error) {
	at := Place{Layer: Project, File: filepath.Join(in.Workspace, ProjectFile)}
	data, err := readProject(in.Workspace)
	if err != nil || data == nil {
		return st, asErrors(at, err)
	}
	narrowed := st.clone()
	err = narrowed.file(data, at, authority{layer: Project, untrusted: true})
	var errs Errors
	if !errors.As(err, &errs) || !errs.widening() {
		narrowed.unasked = true
		return narrowed, err
	}
	trusted, trustErr := in.trusts(in.Workspace, data)
	if trustErr != nil {
		errs.addf(at, "%v", trustErr)
	}
	if !trusted {
		return nil, errs
	}
	return st, st.file(data, at, authority{layer: Project})
}

// asErrors gives an error of the system a place, unless it has one.
func asErrors(at Place, err error) error {
	var errs Errors
	errs.take(at, err)
	return errs.err()
}

// paths checks and completes the directories that everything starts from.
func (in Inputs) paths() (paths, error) {
	for _, d := range []struct{ what, path string }{{"workspace", in.Workspace}, {"home directory", in.Home}} {
		if clean, err := fspath.Clean(d.path, "/", "/"); err != nil || clean != d.path {
			return paths{}, fmt.Errorf("%s %s is not a clean absolute path", d.what, quote(d.path))
		}
	}
	p := paths{workspace: in.Workspace, home: in.Home, own: in.own(), tools: in.Tools}
	if in.Workspace == "/" {
		return paths{}, fmt.Errorf("workspace %q would make the whole machine writable; want a directory of your own", in.Workspace)
	}
	for _, own := range p.own {
		if fspath.Below(in.Workspace, own) {
			return paths{}, fmt.Errorf("workspace %s lies in %q, which holds Bawn's own state", quote(in.Workspace), own)
		}
	}
	return p, nil
}

// own lists Bawn's own places: its directories, and their targets if they are
// symbolic links, for example into a repository of dotfiles that a guest may
// work on.
func (in Inputs) own() []string {
	user := filepath.Join(xdg(in.XDGConfigHome, in.Home, ".config"), "bawn")
	var own []string
	cache := filepath.Join(xdg(in.XDGCacheHome, in.Home, ".cache"), "bawn") // probe results, and sessions' private caches
	list := []string{filepath.Dir(ManagedFile), user, in.State(), cache, filepath.Join(user, "config.toml"), filepath.Join(user, "policy.toml")}
	manifests, _ := filepath.Glob(filepath.Join(user, "plugins", "*")) // the pattern is a good one
	reals := links.Resolved{}
	for _, p := range append(list, manifests...) {
		for _, p := range []string{p, reals.Or(p)} {
			if !slices.ContainsFunc(own, func(o string) bool { return fspath.Below(p, o) }) {
				own = append(own, p)
			}
		}
	}
	return own
}

func (in Inputs) managed() string {
	if in.ManagedPath != "" {
		return in.ManagedPath
	}
	return ManagedFile
}

// User returns the path of the user's file.
func (in Inputs) User() string {
	if in.UserPath != "" {
		return in.UserPath
	}
	return filepath.Join(xdg(in.XDGConfigHome, in.Home, ".config"), "bawn", "config.toml")
}

// State returns Bawn's state directory of this user.
func (in Inputs) State() string {
	return filepath.Join(xdg(in.XDGStateHome, in.Home, ".local/state"), "bawn")
}

// xdg ignores a relative path, as the XDG base directory specification wants.
func xdg(dir, home, otherwise string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(home, otherwise)
}

// config checks what only the whole can show, and reads off the result.
func (st *state) config() (*Config, error) {
	if enabled := st.scalars["isolation.enabled"]; enabled.value == false {
		return nil, Errors{{Place: enabled.at, Problem: "isolation.enabled = false is refused: it would leave unsaid what runs instead", Hint: "remove the line, or say provider = \"host\" in your own configuration"}}
	}
	return &Config{
		Mode: modeNamed(st.scalars["mode"].value), Autonomy: st.finalAutonomy(), Agent: st.text("agent"),
		Provider: st.text("isolation.provider"), Profile: st.text("isolation.policy_profile"),
		Open: st.list("open"), Protected: st.list("protected"), st: st,
	}, nil
}

func (st *state) text(path string) string { return st.scalars[path].value.(string) }

func (st *state) list(name string) []string {
	return texts(st.lists["isolation."+name])
}

func texts(entries []entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.text)
	}
	return out
}

// NetworkAt returns where the network of a session was stated.
func (c *Config) NetworkAt() Place { return c.st.scalars["isolation.network"].at }

// Origins returns every value in force with its place, in the order of the
// table of keys. A path that the project closes is an entry like any other.
func (c *Config) Origins() []Origin {
	var out []Origin
	for _, k := range keys {
		if k.path == "autonomy" {
			out = append(out, c.autonomy())
		} else if s, ok := c.st.scalars[k.path]; ok {
			out = append(out, Origin{Key: k.path, Value: plainValue(s.value), Place: s.at})
		}
		for _, e := range c.st.entries(k) {
			out = append(out, Origin{Key: k.path, Value: e.text, Entry: true, Place: e.at})
		}
	}
	return out
}

func (c *Config) autonomy() Origin {
	s, ok := c.st.scalars["autonomy"]
	if p := c.st.autonomy; p != nil && c.Autonomy.String() == p.value {
		s = *p
	} else if !ok {
		s.at = c.st.scalars["mode"].at
		s.at.Via = strings.TrimPrefix(s.at.Via+", mode", ", ")
	}
	return Origin{Key: "autonomy", Value: c.Autonomy.String(), Place: s.at}
}

// entries returns a list with the project's additions.
func (st *state) entries(k *key) []entry {
	if k.path == "isolation.http" {
		return st.httpEntries()
	}
	all := slices.Clone(st.lists[k.path])
	for _, n := range st.narrowed {
		if n.access == bawn.Hidden && k.path == "isolation.deny" || n.access == bawn.ReadOnly && k.path == "isolation.ro" {
			all = append(all, entry{n.path, n.at})
		}
	}
	return all
}

// plainValue makes a value one that JSON and TOML know.
func plainValue(v any) any {
	if d, ok := v.(time.Duration); ok {
		return shortDuration(d)
	}
	return v
}

// Show writes an Origin's value as TOML.
func (o Origin) Show() string { return show(o.Value) }
