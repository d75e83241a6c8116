package supervise

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// RuleLink is the rule by which a guest's symbolic link fails that would lead the
// human's programs to a place that the guest itself can't write.
const RuleLink = "isolation:link"

// A linkRule says where a guest's symbolic links may lead. A program of the human
// follows such a link on the host, with the human's rights: it must not be led to
// places that the session can't write. Everything is decided by the host's paths,
// on the host's tree: that is where the link is followed.
type linkRule struct {
	home     string // of the human, links resolved; "" if unknown
	homeID   layout.Identity
	root     bool           // the human is root, for whom the system's directories are writable too
	mounts   []layout.Mount // of the guest, by guest's paths
	roots    []hostPlace
	own      []string // Bawn's directories on the host, where guests write too: private caches, git directories
	readable []string // places that the human shows read-only by name, on the host
}

// hostPlace is a writable place by its path in the guest and on the host.
type hostPlace struct{ guest, host string }

// toolChains are places of the home that hold the programs which package managers
// and version managers link to. Only existing, executable files that are linked
// from a directory of programs may be linked to.
var toolChains = []string{
	".pyenv/versions", ".local/share/uv", ".local/uv", ".local/share/mise", ".local/share/rtx", ".asdf/installs", ".nvm/versions", ".local/share/nvm", ".volta/tools", ".fnm", ".local/share/fnm",
	".rustup/toolchains", ".rbenv/versions", ".sdkman/candidates", ".goenv/versions", ".nodenv/versions", ".jenv/versions", ".bun/bin", ".deno/bin", "go/sdk", "sdk",
	".conda/envs", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".local/share/pypoetry", ".local/share/pipx", ".nix-profile", ".local/share/pnpm", ".rye/py", ".local/share/rye", ".local/share/hatch", ".julia/juliaup", ".ghcup",
}

// stores are places of the home that hold what build tools and package managers
// have made: whole directories of them are linked to. No program of the host looks
// for commands or settings there.
var stores = []string{
	".cache/bazel", ".cache/bazelisk", ".cache/uv", ".cache/pnpm", ".local/share/pnpm/store", ".pnpm-store", ".cache/buck2", ".cache/pants", ".cache/deno", ".cache/zig",
}

// programDirs are names of directories whose entries are commands.
var programDirs = []string{"bin", ".bin", "sbin", "Scripts"}

// newLinkRule is the rule of a plan's places.
func newLinkRule(plan *layout.Plan, human int) *linkRule {
	r := &linkRule{home: plan.Home, homeID: plan.HomeID, root: human == 0, mounts: plan.Mounts, own: plan.Own}
	for _, w := range plan.Protected {
		if host := r.onHost(w); host != "" {
			r.roots = append(r.roots, hostPlace{w, host})
		}
	}
	for _, m := range plan.Mounts {
		if m.Kind == layout.KindBindRO && m.Source == m.Target && m.Why != layout.WhyProtected && m.Why != layout.WhyGuarded && m.Why != layout.WhyFile {
			r.readable = append(r.readable, m.Source)
		}
	}
	return r
}

// onHost is where the host has a place of the guest, or "" if the place is one of
// the session's own, which no program of the host comes by.
func (r *linkRule) onHost(p string) string {
	inner := -1
	for i, m := range r.mounts {
		if (m.Target == p || layout.Below(p, m.Target)) && (inner < 0 || len(m.Target) >= len(r.mounts[inner].Target)) {
			inner = i
		}
	}
	if inner < 0 {
		return p // nothing is mounted at all
	}
	m := r.mounts[inner]
	if m.Source == "" || m.Kind == layout.KindCopy || m.Why == layout.WhyPrivateCache || m.IsPrivateGit() || r.isOwn(m.Source) {
		return ""
	}
	return path.Join(m.Source, strings.TrimPrefix(p, m.Target))
}

// isOwn reports whether p, a path of the host, lies in a directory of Bawn's.
func (r *linkRule) isOwn(p string) bool {
	return slices.ContainsFunc(r.own, func(dir string) bool { return p == dir || layout.Below(p, dir) })
}

// inRoot returns the outermost writable place that holds p, a path of the host.
func (r *linkRule) inRoot(p string) (outer hostPlace, ok bool) {
	for _, root := range r.roots {
		if (p == root.host || layout.Below(p, root.host)) && (!ok || len(root.host) < len(outer.host)) {
			outer, ok = root, true
		}
	}
	return outer, ok
}

// inGuest is where the guest has a place of the host that lies in a writable one.
func (r *linkRule) inGuest(p string) string {
	root, _ := r.inRoot(p)
	return path.Join(root.guest, strings.TrimPrefix(p, root.host))
}

// inHome reports whether p lies in the home, or holds it: names that a link's own
// target appends lead on from there.
func (r *linkRule) inHome(p string) bool {
	return r.home != "" && (p == r.home || layout.Below(p, r.home) || layout.Below(r.home, p))
}

// isStore reports whether p lies in a store of a tool.
func (r *linkRule) isStore(p string) bool { return r.oneOf(stores, p) }

// isTool reports whether p lies where tool chains lie, or in a place that the human
// shows by name, and the link lies among programs.
func (r *linkRule) isTool(p, linkDir string) bool {
	shown := slices.ContainsFunc(r.readable, func(dir string) bool { return p == dir || layout.Below(p, dir) })
	return (shown || r.oneOf(toolChains, p)) && slices.Contains(programDirs, path.Base(linkDir))
}

func (r *linkRule) oneOf(places []string, p string) bool {
	return slices.ContainsFunc(places, func(dir string) bool { return layout.Below(p, path.Join(r.home, dir)) })
}

// hides reports whether the guest finds nothing at a place.
func (r *linkRule) hides(p string) bool {
	return slices.ContainsFunc(r.mounts, func(m layout.Mount) bool {
		return (m.Kind == layout.KindHide || m.Kind == layout.KindHideDir) && (m.Target == p || layout.Below(p, m.Target))
	})
}

// climbs is how many directories a target leads up at most.
func climbs(target string) (n int) {
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." {
			n++
		}
	}
	return n
}

// isShared reports whether a writable place is a cache of the host's package
// managers.
func (r *linkRule) isShared(root hostPlace) bool {
	return slices.ContainsFunc(r.mounts, func(m layout.Mount) bool { return m.Why == layout.WhySharedCache && m.Target == root.guest })
}
