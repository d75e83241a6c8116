package plant

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/protect"
)

// Names are a file for each name that the host would execute or obey in a workspace, but
// for those of git directories and credentials.
func Names() (list []string) {
	entries := protect.Project()
	for i := range entries {
		e := &entries[i]
		if e.Class == protect.Credential || strings.HasPrefix(e.Path(), ".git/") || e.Path() == ".git" {
			continue
		}
		name := strings.ReplaceAll(e.Path(), "*", "x")
		if e.Dir() {
			name += "/f"
		}
		list = append(list, name)
	}
	return slices.DeleteFunc(slices.Clone(list), func(p string) bool { // of a directory a name below it stands for both
		return slices.ContainsFunc(list, func(o string) bool { return strings.HasPrefix(o, p+"/") })
	})
}
