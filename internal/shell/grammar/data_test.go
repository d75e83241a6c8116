package grammar

import "testing"

// TestDataParse reads every line of the embedded data.
func TestDataParse(t *testing.T) {
	for name, data := range dataFiles() {
		if err := Check(name, data); err != nil {
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
