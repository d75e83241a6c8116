package main

import "testing"

// TestEnginesAgree: what is measured decides the same.
func TestEnginesAgree(t *testing.T) {
	for _, n := range []int{10, 100} {
		if _, err := newRows(n); err != nil {
			t.Error(err)
		}
	}
	list := statements(10)
	list[9].verdict++
	all, err := engines(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if w := (&row{name: e.name}); w.add(e, requests(statements(10))) == nil {
			t.Errorf("control: %s decides otherwise and is not found", e.name)
		}
	}
}
