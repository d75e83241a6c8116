package main

import (
	"fmt"

	"github.com/bawn-dev/bawn"
)

// A statement is one rule of the set that every engine gets: a prefix of
// paths or command lines, or a suffix of hosts.
type statement struct {
	kind    bawn.Kind
	prefix  string // or suffix
	verdict bawn.Verdict
}

// A request is one thing to decide, with the verdict that is right.
type request struct {
	kind  bawn.Kind
	value string
	want  bawn.Verdict
}

var kinds = []bawn.Kind{bawn.Filesystem, bawn.Command, bawn.Network}

// statements makes n rules, of each kind and verdict a ninth.
func statements(n int) (out []statement) {
	for i := range n {
		s := statement{kind: kinds[i%3], verdict: bawn.Verdict(i / 3 % 3)}
		s.prefix = map[bawn.Kind]string{
			bawn.Filesystem: fmt.Sprintf("/srv/app%d/", i),
			bawn.Command:    fmt.Sprintf("tool%d run ", i),
			bawn.Network:    fmt.Sprintf(".host%d.example", i),
		}[s.kind]
		out = append(out, s)
	}
	return out
}

// value is something that a statement speaks of.
func (s statement) value() string {
	switch s.kind {
	case bawn.Network:
		return "www" + s.prefix
	case bawn.Command:
		return s.prefix + "--fast x"
	}
	return s.prefix + "src/main.go"
}

// requests are those that early, middle and late statements decide, and one
// of each kind that none does: it is asked about.
func requests(list []statement) (out []request) {
	n := len(list)
	for _, i := range []int{0, 1, 2, n/2 - 1, n / 2, n/2 + 1, n - 3, n - 2, n - 1} {
		out = append(out, request{list[i].kind, list[i].value(), list[i].verdict})
	}
	for _, k := range kinds {
		s := statement{kind: k, prefix: map[bawn.Kind]string{bawn.Filesystem: "/srv/other/", bawn.Command: "other run ", bawn.Network: ".other.example"}[k]}
		out = append(out, request{k, s.value(), bawn.Ask})
	}
	return out
}
