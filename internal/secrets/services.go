package secrets

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// servicesText is what is known of variables that hold keys: a line for each
// place that a key goes to.
//
//go:embed services.txt
var servicesText string

// Service returns the bindings of the key in a well-known variable, without a secret's
// name. An unknown variable has none.
func Service(variable string) []bawn.Binding {
	all, err := parseServices(servicesText)
	if err != nil {
		panic("BUG(bawn): " + err.Error()) // a test reads the table
	}
	return slices.Clone(all[variable])
}

// parseServices reads lines of VARIABLE HOST PLACE [NAME] [FILE FORMAT], where
// "-" stands for no name. The first binding of a variable sets it for the
// guest, unless there is a file.
func parseServices(text string) (map[string][]bawn.Binding, error) {
	out := map[string][]bawn.Binding{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) != 3 && len(f) != 4 && len(f) != 6 {
			return nil, fmt.Errorf("services: %q has %d words", line, len(f))
		}
		b := bawn.Binding{Secret: "x", Host: f[1]}
		if err := b.Place.UnmarshalText([]byte(f[2])); err != nil {
			return nil, fmt.Errorf("services: %q: %w", line, err)
		}
		if len(f) > 3 && f[3] != "-" {
			b.Name = f[3]
		}
		if len(f) > 4 {
			b.File, b.Format = f[4], f[5]
		} else if len(out[f[0]]) == 0 {
			b.Env = f[0]
		}
		if err := checkBinding(b); err != nil || !isVariable(f[0]) {
			return nil, fmt.Errorf("services: %q: %w", line, err)
		}
		b.Secret = ""
		out[f[0]] = append(out[f[0]], b)
	}
	return out, nil
}
