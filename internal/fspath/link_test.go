package fspath

import "testing"

// TestLinkInside: a link stays inside where it leads to nothing outside, whatever its
// parts are or become.
func TestLinkInside(t *testing.T) {
	for to, want := range map[string]string{
		"b": "dir/b", "../b": "b", "../x/b": "x/b", "./b": "dir/b", "..": ".",
		"": "", "/etc": "", "../..": "", "../../b": "", "b/../..": "", "b/../c": "", `..\b`: "", "../x/../../..": "", "b\x00": "",
	} {
		if at, ok := LinkInside("dir/link", to); ok != (want != "") || ok && at != want {
			t.Errorf("%q: %q, %t; want %q", to, at, ok, want)
		}
	}
}
