package config

import (
	"path/filepath"
	"testing"
)

// TestDecides: a project may say that its sandbox counts for nothing in decisions, since
// that only tightens; it can't take that back.
func TestDecides(t *testing.T) {
	const decide, table = "[policy]\ncontained = \"decide\"\n", "[policy]\ncontained = \"table\"\n"
	for _, tt := range []struct {
		user, project string
		want, refused bool
	}{
		{"", "", false, false}, {decide, "", true, false}, {"", decide, true, false}, {table, decide, true, false}, {table, "", false, false}, {decide, table, false, true},
	} {
		in := world(t)
		in.UserPath = filepath.Join(in.Home, "config.toml")
		put(t, in.UserPath, tt.user)
		put(t, in.projectFile(), tt.project)
		c, err := Load(in)
		if (err != nil) != tt.refused || err == nil && c.Decides() != tt.want {
			t.Errorf("%q, project %q: %v, %v; want %v", tt.user, tt.project, c, err, tt.want)
		}
	}
}
