package layout

import (
	"path"
	"slices"
)

// makeTargets fills Make: what has to be created below an empty place before
// a mount inside it has a target.
func makeTargets(all []Mount) {
	for i := range all {
		m := &all[i]
		outer := ""
		for _, o := range all[:i] {
			if Below(m.Target, o.Target) && o.Kind != KindRoot && len(o.Target) > len(outer) {
				outer = o.Target
			}
		}
		if k := kindAt(all[:i], outer); outer == "" || (k != KindTmpfs && k != KindHideDir) {
			continue
		}
		for p := m.Target; p != outer; p = path.Dir(p) {
			m.Make = append([]string{p}, m.Make...)
		}
	}
	for i := range all { // a hidden directory that holds something must be able to
		if all[i].Kind == KindHideDir && holds(all[i+1:], all[i].Target) {
			all[i].Kind, all[i].Mode, all[i].SizeMB = KindTmpfs, 0o755, 1
		}
	}
}

func kindAt(mounts []Mount, target string) string {
	for i := len(mounts) - 1; i >= 0; i-- {
		if mounts[i].Target == target {
			return mounts[i].Kind
		}
	}
	return ""
}

func holds(mounts []Mount, dir string) bool {
	return slices.ContainsFunc(mounts, func(m Mount) bool { return Below(m.Target, dir) })
}
