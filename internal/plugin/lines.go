package plugin

import "github.com/pelletier/go-toml/v2"

// NameIn returns what a manifest calls its plugin, "" where it does not say, or
// is no TOML.
func NameIn(text []byte) string {
	var d struct {
		Name string `toml:"name"`
	}
	if len(text) > maxManifest || toml.Unmarshal(text, &d) != nil {
		return ""
	}
	return d.Name
}
