package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/stricttoml"
)

// Bounds of manifests.
const (
	maxManifest = 64 << 10 // bytes
	maxEntries  = 256      // of one list
	maxPlugins  = 512
)

// document is the manifest as it is written.
type document struct {
	Name      string            `toml:"name,omitempty"`
	Kind      string            `toml:"kind,omitempty"`
	Version   string            `toml:"version,omitempty"`
	About     string            `toml:"about,omitempty"`
	Run       Run               `toml:"run,omitempty"`
	Files     Files             `toml:"files,omitempty"`
	Hosts     []string          `toml:"hosts,omitempty"`
	Secrets   []string          `toml:"secrets,omitempty"`
	Env       map[string]string `toml:"env,omitempty"`
	Limits    limits            `toml:"limits,omitempty"`
	Tools     Tools             `toml:"tools,omitempty"`
	Arguments map[string]string `toml:"arguments,omitempty"`
	Hook      hookTable         `toml:"hook,omitempty"`
}

type limits struct {
	Memory      *string  `toml:"memory,omitempty"`
	PIDs        *int64   `toml:"pids,omitempty"`
	CPU         *float64 `toml:"cpu,omitempty"`
	Time        *string  `toml:"time,omitempty"`
	Result      *string  `toml:"result,omitempty"`
	CallsAtOnce *int64   `toml:"calls_at_once,omitempty"`
}

// Parse reads a manifest, whose file is called file in errors. A name that is
// stated must be the given one.
func Parse(file, name string, text []byte) (*Manifest, error) {
	if err := CheckPlugin(name); err != nil {
		return nil, err
	}
	if len(text) > maxManifest {
		return nil, fmt.Errorf("%s: the manifest has %d bytes; want at most %d", file, len(text), maxManifest)
	}
	doc, err := stricttoml.Read(file, text)
	if err != nil {
		return nil, err
	}
	var d document
	if err := doc.Decode(&d); err != nil {
		return nil, err
	}
	m := &Manifest{Name: name, Kind: d.Kind, Version: d.Version, About: d.About, Run: d.Run, Files: d.Files,
		Hosts: d.Hosts, Secrets: d.Secrets, Env: d.Env, Tools: d.Tools, Arguments: d.Arguments}
	if m.Kind == "" {
		m.Kind = Server
	}
	c := &checker{file: file, lines: doc.Lines(), m: m}
	c.named(d.Name)
	c.limits(d.Limits)
	c.hook(d.Hook)
	c.check()
	return m, c.err()
}

// Load reads the manifests of a directory, by name. A missing directory holds
// none; a manifest that can't be read in full is an error, returned beside the
// others.
func Load(dir string) ([]*Manifest, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*Manifest
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".toml")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		if len(all) >= maxPlugins {
			return all, fmt.Errorf("%q holds more than %d manifests", dir, maxPlugins)
		}
		m, err := Read(dir, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, m)
	}
	return all, errors.Join(errs...)
}

// Read reads the manifest of one plugin. The error is fs.ErrNotExist if the plugin
// has no manifest.
func Read(dir, name string) (*Manifest, error) {
	if err := CheckPlugin(name); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, name+".toml")
	text, err := atomicfile.Read(file, maxManifest)
	if err != nil {
		return nil, err
	}
	return Parse(file, name, text)
}

// duration reads a limit of time.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second || d > 30*24*time.Hour {
		return 0, fmt.Errorf("%q is no limit of time; want \"1s\" to \"720h\"", cut(s))
	}
	return d, nil
}

// size reads an amount such as "512m" or "64k", in bytes.
func size(s string) (int64, error) {
	units := "bkmg"
	number, unit := s, 0
	if n := len(s); n > 1 && strings.IndexByte(units, s[n-1]) >= 0 {
		number, unit = s[:n-1], strings.IndexByte(units, s[n-1])
	}
	var bytes int64
	for _, c := range number {
		if c < '0' || c > '9' || bytes > 1<<30 {
			return 0, fmt.Errorf("%q is no size; want a number with k, m or g, such as \"512m\"", cut(s))
		}
		bytes = bytes*10 + int64(c-'0')
	}
	if number == "" || bytes > 1<<20 && unit == 3 {
		return 0, fmt.Errorf("%q is no size; want a number with k, m or g, such as \"512m\"", cut(s))
	}
	return bytes << (10 * unit), nil
}
