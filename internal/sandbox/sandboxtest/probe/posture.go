package probe

// A Posture is everything observable that a process can find out about what
// it may do. Posture golden files hold one as JSON.
type Posture struct {
	UID          []string          `json:"uid"` // real, effective, saved, file system
	GID          []string          `json:"gid"`
	Groups       []string          `json:"groups"`
	Capabilities map[string]string `json:"capabilities"`
	NoNewPrivs   string            `json:"noNewPrivs"`
	Seccomp      string            `json:"seccomp"`
	Namespaces   map[string]string `json:"namespaces"` // "same" as outside, or "new"
	Mounts       []string          `json:"mounts"`     // target, type, options
	OtherMounts  MountSum          `json:"otherMounts"`
	Descriptors  []string          `json:"descriptors"`
	Rlimits      map[string]string `json:"rlimits"` // soft/hard, where they differ from outside
	Env          []string          `json:"env"`
	Session      string            `json:"session"`
	Terminal     bool              `json:"terminal"`
	Umask        string            `json:"umask"`
	Dev          []string          `json:"dev"`
}

// A MountSum says what is true of every mount that depends on the machine.
type MountSum struct {
	ReadOnly bool `json:"readOnly"`
	NoSUID   bool `json:"nosuid"`
	NoDev    bool `json:"nodev"`
}

// Limits are the resource limits of getrlimit(2) by name, with the numbers of
// amd64 and arm64.
var Limits = map[string]int{
	"cpu": 0, "fsize": 1, "data": 2, "stack": 3, "core": 4, "rss": 5, "nproc": 6, "nofile": 7, "memlock": 8,
	"as": 9, "locks": 10, "sigpending": 11, "msgqueue": 12, "nice": 13, "rtprio": 14, "rttime": 15,
}
