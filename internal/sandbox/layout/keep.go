package layout

import "slices"

// keep lists the places that must stay covered while a session runs: hidden
// places, as they were named, and everything that covers a place of the host
// with something else. Host programs can't replace files that the kernel makes
// anew for each session.
func (b *builder) keep(mounts []Mount) []string {
	list := slices.Clone(b.hidden)
	for _, m := range mounts {
		switch {
		case Below(m.Target, "/proc"), Below(m.Target, "/sys"), Below(m.Target, "/dev"):
		case m.Kind == KindHide, m.Kind == KindHideDir, m.Kind == KindTmpfs, m.Why == WhyFile, m.Why == WhyUsers, m.Why == WhyPrivateGit:
			list = append(list, m.Target)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
