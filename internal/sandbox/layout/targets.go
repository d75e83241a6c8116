package layout

import (
	"path"
	"slices"
)

// makeTargets fills Make: everything that must be created below an empty place
// before a mount inside it has a target.
func makeTargets(all []Mount) {
	for i := range all {
		m := &all[i]
		outer := ""
		for _, o := range all[:i] {
			if Below(m.Target, o.Target) && o.Kind != KindRoot && len(o.Target) > len(outer) {
				outer = o.Target
			}
		}
		if outer == "" || !empties(all[:i], outer) {
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

// empties reports whether the last mount at a place leaves an empty directory of
// the session's own there.
func empties(mounts []Mount, target string) bool {
	for _, m := range slices.Backward(mounts) {
		if m.Target == target {
			return m.Kind == KindTmpfs || m.Kind == KindHideDir || m.Why == whySharedTmp
		}
	}
	return false
}

func holds(mounts []Mount, dir string) bool {
	return slices.ContainsFunc(mounts, func(m Mount) bool { return Below(m.Target, dir) })
}
