package sandboxtest

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keeping returns a runner that then makes those repositories the human's that the
// guest has made. What Bawn still lists of the workspace is put on standard error,
// as a note that no piece of work expects.
func keeping(words []string, run WorkRunner) WorkRunner {
	git := append(slices.Clone(words[:slices.Index(words, "run")]), "git")
	return func(dir string, stdin io.Reader, argv ...string) (string, string, int) {
		out, errs, code := run(dir, stdin, argv...)
		for _, path := range emptyGits(dir) {
			if said, complaint, code := Wrapped(git...)(dir, nil, "keep", path); code != 0 || said+complaint != "" {
				errs += fmt.Sprintf("%skeep %s: %d: %s%s\n", gitNote, path, code, said, strings.ReplaceAll(complaint, "\n", " "))
			}
		}
		return out, errs + leftBy(dir, git), code
	}
}

// emptyGits are the git directories that a session leaves on the host where the
// guest has made a repository.
func emptyGits(dir string) (list []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != ".git" || !d.IsDir() {
			return nil //nolint:nilerr // what can't be read has none
		}
		if in, err := os.ReadDir(path); err == nil && len(in) == 0 {
			list = append(list, path)
		}
		return fs.SkipDir
	})
	return list
}

// leftBy is what "bawn git" lists of a workspace.
func leftBy(dir string, git []string) (notes string) {
	out, errs, code := Wrapped(git...)(dir, nil, "list", "--json")
	var left struct {
		Beside   []json.RawMessage
		Sessions []struct {
			Workspace string
			Report    []string
			Made      []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(out), &left); err != nil || code != 0 {
		return fmt.Sprintf("%slist: %d: %v: %s%s\n", gitNote, code, err, out, errs)
	}
	for _, b := range left.Beside {
		var entry struct{ Undo bool }
		if json.Unmarshal(b, &entry) == nil && entry.Undo {
			continue // what the session has thrown away of the human's, for "bawn undo"
		}
		notes += fmt.Sprintf("%sleft beside: %s\n", gitNote, compact(b))
	}
	for _, s := range left.Sessions {
		if s.Workspace == dir {
			notes += fmt.Sprintf("%sleft: %q %s\n", gitNote, s.Report, compact(s.Made...))
		}
	}
	return notes
}

func compact(list ...json.RawMessage) string {
	text, err := json.Marshal(list)
	return fmt.Sprint(string(text), err)
}
