package supervise

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// targets lists where the plan mounts something.
func targets(mounts []layout.Mount) []string {
	list := make([]string, len(mounts))
	for i, m := range mounts {
		list[i] = m.Target
	}
	return list
}

// shownSockets are the sockets of the host that the guest may connect to.
func shownSockets(p *layout.Plan) map[string]layout.Identity {
	list := map[string]layout.Identity{}
	for _, m := range p.Mounts {
		if m.Why == layout.WhyFile && slices.Contains(p.Sockets, m.Target) {
			list[m.Target] = m.ID
		}
	}
	return list
}

// privateDevices are the device numbers of the session's own file systems.
func privateDevices(root int, mounts []layout.Mount) map[uint64]bool {
	devs := map[uint64]bool{}
	for _, m := range mounts {
		targets := []string{m.Target}
		if m.Kind == layout.KindDev {
			targets = []string{m.Target + "/shm"}
		} else if m.Kind != layout.KindTmpfs {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(root, "."+targets[0], &st, 0) == nil {
			devs[st.Dev] = true
		}
	}
	return devs
}
