package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A task leaves nothing and says how long it took.
func TestTasks(t *testing.T) {
	dir := t.TempDir()
	for name := range tasks {
		var out bytes.Buffer
		var s measure.Sample
		if err := doTask(name, dir, &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := json.Unmarshal(out.Bytes(), &s); err != nil || s.Wall <= 0 {
			t.Errorf("%s: %q, %v", name, &out, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", name, left, err)
		}
	}
	if doTask("none", dir, &bytes.Buffer{}) == nil {
		t.Error("an unknown task: no error")
	}
}

// A build writes 200 MB, the same ones every time.
func TestBuildWrites(t *testing.T) {
	dir := t.TempDir()
	if err := writeSources(dir); err != nil {
		t.Fatal(err)
	}
	if err := compile(dir); err != nil {
		t.Fatal(err)
	}
	var written int64
	for _, pattern := range []string{"object-*", "program"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			info, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			written += info.Size()
		}
	}
	if written != 2*sources*sourceSize || written < 200e6 {
		t.Errorf("%d bytes were written, want at least 200 MB", written)
	}
}

// Every way of bawn's on an engine is compared with the engine's own for the
// same measure, and native with none.
func TestRivals(t *testing.T) {
	f := &field{self: "self", program: "true"}
	list := append(f.ways("docker", bawnName, []string{"bawn"}, []string{"in"}), f.ways("docker", "docker", []string{"docker"}, []string{"exec"})...)
	list = append(list, f.ways("native", bawnName, []string{"bawn"}, nil)...)
	for _, w := range list {
		r, ok := rival(list, w)
		if want := w.Provider == "docker" && w.Who == bawnName; ok != want || ok && (r.Who != "docker" || r.Measure != w.Measure) {
			t.Errorf("%v: got %v, %v", w, r, ok)
		}
	}
}

func TestSaveJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	all := results{{"docker", bawnName, cold}: {{Wall: 3 * time.Millisecond}, {Wall: time.Millisecond}, {Wall: 2 * time.Millisecond}}}
	if err := saveJSON(path, all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Provider, Who, Measure string
		MedianMS               float64
		Samples                []float64
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got) != 1 || got[0].MedianMS != 2 || len(got[0].Samples) != 3 || got[0].Provider != "docker" {
		t.Errorf("got %+v, %v", got, err)
	}
}
