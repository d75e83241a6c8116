package dockerapi

import (
	"slices"
	"strings"
)

// knownFilters refuses filters that the engine would ignore: it would list, or remove,
// more than the guest asked for.
func (c *call) knownFilters(names ...string) error {
	for name := range c.filters {
		if !oneOf(name, names...) {
			return refuse(RuleQuery, "leave it out", "the filter %.50q", name)
		}
	}
	return nil
}

// wants reports whether one of a filter's values is met, or the filter has no
// values.
func (c *call) wants(name string, met func(string) bool) bool {
	return len(c.filters[name]) == 0 || slices.ContainsFunc(c.filters[name], met)
}

// labelled reports whether labels has all that are asked for.
func (c *call) labelled(labels map[string]string) bool {
	for _, want := range c.filters["label"] {
		name, value, exact := strings.Cut(want, "=")
		if have, ok := labels[name]; !ok || exact && have != value {
			return false
		}
	}
	return true
}
