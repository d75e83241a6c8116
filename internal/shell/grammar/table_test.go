package grammar_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/shell"
)

// TestLines reads the tables of testdata: a command line, a tab, and "proven
// EFFECT" or "unproven" for its first command.
func TestLines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			n++
			command, want, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
			if command == "" || command[0] == '#' {
				continue
			}
			if got, why := prove(command); !ok || got != want {
				t.Errorf("%s:%d: %s: got %q, want %q (%s)", file, n, command, got, want, why)
			}
		}
	}
}

// prove says what is known of the first command of a line.
func prove(command string) (got, why string) {
	l := shell.Read(command, shell.Context{Dir: "/proj", Home: "/home/user"})
	switch {
	case len(l.Opaque) > 0:
		return "unproven", l.Opaque[0].Reason
	case len(l.Commands) == 0:
		return "unproven", "no command"
	case l.Commands[0].Unproven != "":
		return "unproven", l.Commands[0].Unproven
	}
	return "proven " + l.Commands[0].Meaning.Effect.String(), ""
}
