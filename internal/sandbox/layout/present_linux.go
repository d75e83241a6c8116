package layout

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/bawn-dev/bawn/internal/protect"
)

// spelledOut leaves out names that dir can't hold, and replaces those with a "*" in
// their last part by their matches. One look at the directory costs less than one
// at each of some hundred names.
func spelledOut(dir string, names []string) []string {
	there := firsts(dir)
	listed := map[string][]string{}
	var list []string
	for _, n := range names {
		first, _, deeper := strings.Cut(strings.TrimPrefix(n, "/"), "/")
		switch {
		case !strings.Contains(n, "*"):
			if there == nil || there[protect.FoldName(first)] {
				list = append(list, n)
			}
			continue
		case deeper && there != nil && !there[protect.FoldName(first)]:
			continue
		}
		in := path.Dir(n)
		if _, ok := listed[in]; !ok {
			listed[in], _ = namesIn(path.Join(dir, in))
		}
		for _, name := range listed[in] {
			if ok, err := path.Match(path.Base(n), name); ok && err == nil {
				list = append(list, path.Join(in, name))
			}
		}
	}
	return list
}

// firsts are the folded names of a directory, or nil where they may not be all.
func firsts(dir string) map[string]bool {
	names, err := namesIn(dir)
	if err != nil || len(names) >= maxListed {
		return nil
	}
	there := make(map[string]bool, len(names))
	for _, n := range names {
		there[protect.FoldName(n)] = true
	}
	return there
}

// namesIn returns the names in a directory, as far as maxListed.
func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxListed)
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	return names, err
}
