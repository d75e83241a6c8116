// Package fakemachine is a machine that is written down, for the golden plans of
// providers.
package fakemachine

import (
	"os"
	"path"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Machine lists what is there: absolute paths, those of directories ending in
// a slash, those of sockets in ".sock".
type Machine []string

func (m Machine) find(p string) (layout.File, bool) {
	for i, e := range m {
		if strings.TrimSuffix(e, "/") == p || e == p {
			return layout.File{Real: p, Dir: strings.HasSuffix(e, "/"), Socket: strings.HasSuffix(e, ".sock"), ID: layout.Identity{Dev: 1, Ino: uint64(i + 1)}}, true
		}
	}
	return layout.File{}, false
}

// Facts are those of the machine for a user. Its files can't be read, and none
// is a link.
func (m Machine) Facts(uid int) layout.Facts {
	return layout.Facts{
		UID: uid, GID: uid, NobodyUID: 65534, NobodyGID: 65534, LandlockABI: 7, IPv6: true, Lookup: m.find, Resolver: "/run/systemd/resolve/stub-resolv.conf",
		Present: func(dir string, names []string) (list []layout.Entry) {
			for _, n := range names {
				if f, ok := m.find(path.Join(dir, n)); ok {
					list = append(list, layout.Entry{Name: n, File: f})
				}
			}
			return list
		},
		Follow:   func(p string) ([]string, string) { return nil, p },
		Links:    func(string) []string { return nil },
		List:     func(string) ([]layout.Listed, error) { return nil, nil },
		ReadFile: func(string) (string, error) { return "", os.ErrNotExist },
	}
}
