package grammar

import (
	"io/fs"
	"testing"
)

// TestDataParse reads every line of the embedded data.
func TestDataParse(t *testing.T) {
	names, err := fs.Glob(files, "data/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no data", err)
	}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(name, string(data)); err != nil {
			t.Error(err)
		}
	}
	b := library()
	for program := range b.lines {
		if specials[program] != nil && program != "tar" && program != "bsdtar" && program != "gtar" {
			t.Errorf("%s has forms, but is read in Go", program)
		}
		if _, err := b.program(program); err != nil {
			t.Error(err)
		}
	}
}
