package plugin

import "github.com/pelletier/go-toml/v2"

// NameIn returns the plugin's name in a manifest, or "" if it has none, or is
// not TOML.
func NameIn(text []byte) string {
	var d struct {
		Name string `toml:"name"`
	}
	if len(text) > maxManifest || toml.Unmarshal(text, &d) != nil {
		return ""
	}
	return d.Name
}
