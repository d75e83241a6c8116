package dockerapi

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

// What one side has changed goes to the other one, and of what both have changed the
// guest's stays.
func TestMerge(t *testing.T) {
	one, two, three := fileState{kind: kindFile, mode: 1}, fileState{kind: kindFile, mode: 2}, fileState{kind: kindFile, mode: 3}
	none, other := fileState{}, fileState{kind: kindOther}
	list := func(yes bool) []string {
		if yes {
			return []string{"x"}
		}
		return nil
	}
	for _, c := range []struct {
		base, guest, container, held *fileState
		put, remove, push, conflict  bool
	}{
		{base: &one, guest: &one, container: &one},
		{base: &one, guest: &one, container: &two, put: true},
		{base: &none, guest: &none, container: &two, put: true},
		{base: &one, guest: &one, container: &none, remove: true},
		{base: &one, guest: &two, container: &one, push: true},
		{base: &none, guest: &two, container: &none, push: true},
		{base: &one, guest: &none, container: &one},
		{base: &one, guest: &two, container: &two},
		{base: &one, guest: &two, container: &three, push: true, conflict: true},
		{base: &one, guest: &two, container: &none, push: true, conflict: true},
		{base: &one, guest: &none, container: &two, conflict: true},
		{base: &one, guest: &other, container: &two, conflict: true},
		{base: &none, guest: &other, container: &none},
		{base: &none, guest: &none, container: &two, held: &two},
		{base: &none, guest: &none, container: &three, held: &two, put: true},
		{base: &one, guest: &one, container: &none, held: &none},
		{base: &none, guest: &one, container: &two, held: &two, push: true, conflict: true},
	} {
		m := &mirror{base: tree{}, held: tree{}}
		guest, container := tree{}, tree{}
		m.base.set("x", *c.base)
		guest.set("x", *c.guest)
		container.set("x", *c.container)
		if c.held != nil {
			m.held["x"] = *c.held
		}
		want := merged{list(c.put), list(c.remove), list(c.push), list(c.conflict)}
		if got := m.merge(guest, container); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %+v, %+v: %+v; want %+v", *c.base, *c.guest, *c.container, got, want)
		}
	}
}

// An archive that lacks its end is told from a whole one: its missing names would be
// removed from the workspace.
func TestArchivesThatEndEarly(t *testing.T) {
	var whole bytes.Buffer
	w := tar.NewWriter(&whole)
	for _, name := range []string{"dir/a", "dir/b"} {
		if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 512}), func() error { _, err := w.Write(make([]byte, 512)); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]bool{whole.Len(): true, whole.Len() - 512: false, whole.Len() - 1024: false, 1024: false, 0: false} {
		a := newArchive(bytes.NewReader(whole.Bytes()[:size]))
		err := error(nil)
		for err == nil {
			if _, err = a.head(); err == nil {
				_, err = io.Copy(io.Discard, a.tar)
			}
		}
		if got := errors.Is(err, io.EOF) && a.ended(); got != want {
			t.Errorf("%d of %d bytes: ended %v, %v", size, whole.Len(), got, err)
		}
	}
}
