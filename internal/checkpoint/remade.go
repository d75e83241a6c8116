package checkpoint

import (
	_ "embed"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed remade.txt
var remadeText string

// A sign tells that a directory can be made again. One without names needs none.
type sign struct {
	in    bool // the names are those of files in it; else beside it
	names []string
}

// remadeNames has the signs of each name, of which one has to hold.
var remadeNames = parseRemade(remadeText)

func parseRemade(text string) map[string][]sign {
	m := map[string][]sign{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		var s sign
		if len(f) > 2 {
			s = sign{in: f[1] == "in", names: f[2:]}
		}
		m[f[0]] = append(m[f[0]], s)
	}
	return m
}

// remadeBy reports whether programs make a directory again that is open at fd. beside
// reports what is beside it.
func remadeBy(name string, fd int, beside func(mark string) bool) bool {
	return slices.ContainsFunc(remadeNames[name], func(s sign) bool {
		return len(s.names) == 0 || slices.ContainsFunc(s.names, func(mark string) bool {
			if !s.in {
				return beside(mark)
			}
			var st unix.Stat_t
			return unix.Fstatat(fd, mark, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
		})
	})
}
