package grammar

import "testing"

// TestOptions tries values of make settings and of compiler options that run
// a program, beside ordinary ones.
func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		kind, text string
		ok         bool
		claims     int
	}{
		{"GOAL", "all", true, 0},
		{"GOAL", "V=1", true, 0},
		{"GOAL", "CC=clang", true, 0},
		{"GOAL", "CFLAGS=-O2 -Wall", true, 0},
		{"GOAL", "DESTDIR=/usr", true, 1},
		{"GOAL", "SHELL=sh", false, 0},
		{"GOAL", ".SHELLFLAGS=-c", false, 0},
		{"GOAL", "MAKEFLAGS:=-E", false, 0},
		{"GOAL", "CC=./evil", false, 0},
		{"GOAL", "V=1;id", false, 0},
		{"GOAL", "V=$(id)", false, 0},
		{"OPTS", "-s -w -X main.version=1.2", true, 0},
		{"OPTS", "-extldflags -static", true, 0},
		{"OPTS", "-extld=./evil", false, 0},
		{"OPTS", "l,-plugin=./evil.so", false, 0},
		{"OPTS", "@args", false, 0},
		{"OPTS", "l,-rpath,/x", true, 1},
		{"OPTS", "-I../../x", true, 1},
	} {
		m := match{form: &form{effect: Builds}, program: "make", label: "make"}
		err := m.value(value{kind: tt.kind}, Word{Text: tt.text})
		if (err == nil) != tt.ok || len(m.claims) != tt.claims {
			t.Errorf("%s %q: %v with %d claims; want proof %t with %d", tt.kind, tt.text, err, len(m.claims), tt.ok, tt.claims)
		}
	}
}
