package measure

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// A Bench is what every benchmark has: a name, flags, and a result.
type Bench struct {
	Out      string // directory of the result
	name, as string
}

// Flags declares -out, and -as where as names its default.
func Flags(name, as string) *Bench {
	b := &Bench{name: name}
	if as != "" {
		flag.StringVar(&b.as, "as", as, "users to run as: root, user or both")
	}
	flag.StringVar(&b.Out, "out", "", "directory of the result (default: bench/results)")
	return b
}

// Main parses the command line, runs the benchmark, and exits for an error.
func (b *Bench) Main(run func() error) {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
		os.Exit(1)
	}
}

// OnGround has a benchmark measure on a ground of its own, which is removed, and
// write below the module's root unless -out says where.
func (b *Bench) OnGround(measure func(*Ground) error) error {
	if b.Out == "" {
		root, err := Root()
		if err != nil {
			return err
		}
		b.Out = filepath.Join(root, "bench", "results")
	}
	g, err := NewGround()
	if err != nil {
		return err
	}
	return errors.Join(measure(g), g.Close())
}

// Ready copies the running program, builds packages of this module, and makes
// the users that -as names.
func (b *Bench) Ready(g *Ground, pkgs ...string) (self string, whos []Who, err error) {
	if self, err = g.Self(); err != nil {
		return "", nil, err
	}
	for _, pkg := range pkgs {
		if _, err := g.Build(pkg); err != nil {
			return "", nil, err
		}
	}
	whos, err = b.Users(g)
	return self, whos, err
}

// Users makes those that -as names; see [Ground.Whos].
func (b *Bench) Users(g *Ground) ([]Who, error) { return g.Whos(b.as) }

// Each measures as one user after the other.
func Each(whos []Who, measure func(Who) error) error {
	for _, who := range whos {
		if err := measure(who); err != nil {
			return fmt.Errorf("as %s: %w", who.Name, err)
		}
	}
	return nil
}

// Write saves the report and says where it is.
func (b *Bench) Write(r *Report) error {
	path, err := r.Save(b.Out, b.name)
	if err == nil {
		fmt.Printf("%s: written to %s\n", b.name, path)
	}
	return err
}
