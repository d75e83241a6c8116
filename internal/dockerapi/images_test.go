package dockerapi

import "testing"

// TestImageNames: a name becomes one part of a path and can't leave it.
func TestImageNames(t *testing.T) {
	for name, want := range map[string]bool{
		"busybox": true, "team/app:1": true, "registry.example.org:5000/team/app": true, "a/b.c/..d": true,
		"": false, "a/../../containers/other": false, "a/./b": false, "a//b": false, "a/..": false, "../a": false, "a/b/": false,
	} {
		if imageName(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}
