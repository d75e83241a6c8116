package layout

import (
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A Plan is all that Start will do, as a value. Its JSON form, whose keys are
// spelled as those of the configuration, is printed by --plan and compared in
// golden tests.
type Plan struct {
	Rung        string            `json:"rung"` // "namespaces" or "landlock"
	Namespaces  []string          `json:"namespaces"`
	UID         Mapping           `json:"uid"`
	GID         Mapping           `json:"gid"`
	Mounts      []Mount           `json:"mounts"`
	Loopback    bool              `json:"loopback"` // bring lo up in the new network namespace
	Network     *Network          `json:"network,omitempty"`
	NoNetwork   bool              `json:"no_ip_sockets,omitempty"`
	Sockets     []string          `json:"host_sockets,omitempty"`        // targets of mounts that the guest may connect to
	Tmp         string            `json:"temporary_directory,omitempty"` // on rung "landlock"
	Landlock    Landlock          `json:"landlock"`
	Seccomp     string            `json:"seccomp"`
	Supervised  bool              `json:"supervised"`
	OwnFiles    bool              `json:"own_files,omitempty"`       // all that it writes is the session's own: the kernel decides about names
	Protected   []string          `json:"protected_below,omitempty"` // writable places of the host
	Projects    []string          `json:"without_homes,omitempty"`   // those in which dotfiles of logins count at the top only
	ExtraNames  []string          `json:"protected_names,omitempty"`
	OpenNames   []string          `json:"unprotected_names,omitempty"`
	InHome      []string          `json:"protected_places,omitempty"`  // below the home directory, that the host executes or obeys
	Absent      []string          `json:"hidden_and_absent,omitempty"` // must not come into being
	Targets     []string          `json:"protected_targets,omitempty"` // targets of protected names that are links, and links to hidden or read-only files
	Guarded     []string          `json:"guarded,omitempty"`           // files that the agent obeys, absolute, existing or not
	Owned       []string          `json:"owned,omitempty"`             // written though their names are protected, absolute
	Unprotected bool              `json:"unprotected,omitempty"`       // no file is protected by its name
	Denied      []string          `json:"denied_patterns,omitempty"`   // of names that must not come into being, absolute
	Limits      bawn.Resources    `json:"limits"`
	Env         []string          `json:"-"`
	EnvNames    []string          `json:"environment"`
	Argv        []string          `json:"argv"`
	Dir         string            `json:"directory"`
	InPart      []bawn.Capability `json:"enforced_in_part,omitempty"`
	Session     string            `json:"-"`
	Programs    bool              `json:"programs_held,omitempty"` // execve(2) is decided

	SharedCopy *sandbox.SharedCopy `json:"-"` // nil where no other sandbox has the copy

	Holds *sandbox.Programs `json:"-"` // that decide; nil where Programs is false

	Kept   []string `json:"-"` // hidden places, there or not, as they were named and where they lie
	Home   string   `json:"-"` // of the human, links resolved, or ""
	HomeID Identity `json:"-"`
	Own    []string `json:"-"` // Bawn's own directories, links resolved
}

// Rungs of the ladder: the second stands where user namespaces are closed.
const (
	RungNamespaces = "namespaces"
	RungLandlock   = "landlock"
)

// Provider returns the name of the provider that carries the plan out.
func (p *Plan) Provider() string {
	if p.Rung == RungLandlock {
		return LandlockName
	}
	return NativeName
}

// OnHost is the plan by the host's paths, also of a provider whose own plan holds it.
func (p *Plan) OnHost() *Plan { return p }

// Partly lists the attributes enforced in part.
func (p *Plan) Partly() []bawn.Capability { return p.InPart }

// Places lists the guest's visible and writable places of the host.
func (p *Plan) Places() []bawn.Mount {
	var list []bawn.Mount
	add := func(access bawn.Access, why string, paths ...string) {
		for _, p := range paths {
			list = append(list, bawn.Mount{Path: p, Access: access, Why: why})
		}
	}
	if p.Rung == RungLandlock {
		add(bawn.ReadOnly, "readable", p.Landlock.Readable...)
		add(bawn.ReadWrite, "writable", p.Landlock.Writable...)
		return list
	}
	for _, m := range p.Mounts {
		if access, ok := m.access(); ok {
			add(access, m.Why, m.Target)
		}
	}
	add(bawn.Hidden, "not there", p.Absent...)
	return list
}

// access is a mount's access to a place of the host; false for anything else.
func (m *Mount) access() (bawn.Access, bool) {
	switch {
	case m.Why == WhyFile, m.Why == WhyUsers:
		return bawn.Hidden, false
	case m.Kind == KindBind && m.Source == m.Target:
		return bawn.ReadWrite, true
	case m.Kind == KindBind || m.Kind == KindTmpfs || m.Kind == KindCopy && !m.ReadOnly:
		return bawn.Private, true
	case m.Kind == KindBindRO || m.Kind == KindRoot || m.Kind == KindCopy && m.ReadOnly:
		return bawn.ReadOnly, true
	}
	return bawn.Hidden, m.Kind == KindHide || m.Kind == KindHideDir
}

// Environ is the guest's environment.
func (p *Plan) Environ() []string { return slices.Clone(p.Env) }

// A Mapping is one id inside and the same id outside.
type Mapping struct {
	Inside  int `json:"inside"`
	Outside int `json:"outside"`
}

// Landlock is the policy a second time, for the rights this kernel knows.
type Landlock struct {
	ABI      int      `json:"abi"`
	Writable []string `json:"writable"`
	// Readable is set where no mount hides anything: every place that may be
	// read, with the hidden ones left out.
	Readable []string `json:"readable,omitempty"`
}

// Kinds of mount. A tmpfs, or a file of the guest's own, holds sockets that it
// may connect to.
const (
	KindRoot    = "root"      // everything, read-only
	KindBind    = "bind"      // a place of the host, writable
	KindBindRO  = "bind-ro"   // a place of the host, read-only
	KindCopy    = "copy"      // a place of the host, with a layer of the session's own over it
	KindTmpfs   = "tmpfs"     // an empty place of the session's own
	KindProc    = "proc"      //
	KindSysfs   = "sysfs"     //
	KindDev     = "dev"       // a minimal /dev
	KindPool    = "pool"      // a place of the host, writable, that no guest gets to
	KindHideDir = "hide-dir"  // an empty directory nobody may open
	KindHide    = "hide-file" // an empty file nobody may open
)

// Hidden places are covered with these: entries of /dev that nobody may open.
const (
	HiddenDir  = "/dev/.hidden"
	HiddenFile = "/dev/.hidden-file"
)

// A Mount is one step of building the guest's root; order matters.
type Mount struct {
	Kind   string `json:"kind"`
	Source string `json:"source,omitempty"`
	Layer  string `json:"layer,omitempty"` // of a copy
	Target string `json:"target"`
	SizeMB int64  `json:"size_mb,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`
	Why    string `json:"why,omitempty"`
	// Make lists what must be created below a tmpfs before the target exists,
	// outermost first; the last one is a file if File.
	Make []string `json:"make,omitempty"`
	File bool     `json:"file,omitempty"`
	// ReadOnly is a copy that others of the session write.
	ReadOnly bool `json:"read_only,omitempty"`
	// Devices of /dev.
	Devices []string `json:"devices,omitempty"`

	ID      Identity `json:"-"` // of the source when the plan was made; zero: not looked at
	layerID Identity
}

// An Identity pins a source to the file at the time of the plan.
type Identity struct{ Dev, Ino uint64 }

// A File is what Facts know of a path.
type File struct {
	Real   string // with every symbolic link resolved
	Dir    bool
	Socket bool // of the file system: unix(7)
	ID     Identity
}

// An Entry is a name in a directory, and its target.
type Entry struct {
	Name string // as it was asked for; may hold slashes
	File
}

// Facts are a plan's inputs besides the request. They are gathered once, so
// that making a plan touches nothing and a test can state them.
type Facts struct {
	UID, GID             int
	NobodyUID, NobodyGID int // what root is inside
	LandlockABI          int
	IPv6                 bool   // for guests with a network of their own
	Resolver             string // where /etc/resolv.conf leads, if below /run
	Lookup               func(path string) (File, bool)
	Sealed               func(path string) (File, bool)                 // below a sealed directory; see Own. It may be nil
	Present              func(dir string, names []string) []Entry       // which of names dir holds
	Follow               func(path string) (links []string, end string) // on the way, and where it leads, there or not
	Links                func(dir string) []string                      // names of the symbolic links in dir
	ReadFile             func(path string) (string, error)              // small files of a git directory
	List                 func(dir string) ([]Listed, error)             // all that a directory holds
}

// Own finds a path that Bawn itself has chosen, which may lie in one of its sealed
// directories. It is not for paths that a user or a guest names.
func (f Facts) Own(p string) (File, bool) {
	if at, ok := f.Lookup(p); ok || f.Sealed == nil {
		return at, ok
	}
	return f.Sealed(p)
}
