package native

import (
	"os"
	"path"
	"strings"
)

// spelledOut replaces names that have a "*" in their last part by those of dir that
// they match.
func spelledOut(dir string, names []string) []string {
	var list, globs []string
	for _, n := range names {
		if strings.Contains(n, "*") {
			globs = append(globs, n)
		} else {
			list = append(list, n)
		}
	}
	listed := map[string][]string{}
	for _, g := range globs {
		in := path.Dir(g)
		if _, ok := listed[in]; !ok {
			listed[in] = namesIn(path.Join(dir, in))
		}
		for _, name := range listed[in] {
			if ok, err := path.Match(path.Base(g), name); ok && err == nil {
				list = append(list, path.Join(in, name))
			}
		}
	}
	return list
}

// namesIn returns the names in a directory, as far as maxListed.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxListed)
	return names
}
