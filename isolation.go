package bawn

import (
	"bytes"
	"encoding/json"
	"time"
)

// Access is what a session may do below a path. The zero Access hides it.
type Access uint8

const (
	Hidden    Access = iota // neither read nor written; looks empty or refuses
	ReadOnly                // read, never written
	Private                 // an empty place of the session's own, gone at its end
	ReadWrite               // read and written on the host
)

var accessNames = []string{"hidden", "read-only", "private", "read-write"}

// String returns the access's name; what is no access reads "hidden".
func (a Access) String() string {
	if a > ReadWrite {
		return "hidden"
	}
	return accessNames[a]
}

// MarshalText writes the access's name.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText accepts exactly the four names; otherwise a becomes hidden.
func (a *Access) UnmarshalText(text []byte) error {
	n, err := unmarshalName("access", accessNames, text)
	*a = Access(n)
	return err
}

// A Mount says what a session may do below one absolute path. Where several
// mounts cover a path the longest one counts.
type Mount struct {
	Path   string
	Access Access
	Why    string // where it came from: "profile default", "--rw", …
}

// A NetworkMode says how much of the network a session reaches.
type NetworkMode uint8

const (
	NetworkNone      NetworkMode = iota // an empty network of its own
	NetworkAllowlist                    // hosts by name
	NetworkFull                         // the host's network
)

var networkNames = []string{"none", "allowlist", "full"}

// String returns the mode's name; what is no mode reads "none".
func (n NetworkMode) String() string {
	if n > NetworkFull {
		return "none"
	}
	return networkNames[n]
}

// MarshalText writes the mode's name.
func (n NetworkMode) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText accepts exactly the three names; otherwise n becomes none.
func (n *NetworkMode) UnmarshalText(text []byte) error {
	i, err := unmarshalName("network mode", networkNames, text)
	*n = NetworkMode(i)
	return err
}

// A CacheMode says how a session uses the host's package caches.
type CacheMode uint8

const (
	CacheReadOnly CacheMode = iota // the host's, not written
	CachePrivate                   // a copy of Bawn's own, kept between sessions
	CacheShared                    // the host's, written
)

var cacheNames = []string{"read-only", "private", "shared"}

// String returns the mode's name; what is no mode reads "read-only".
func (c CacheMode) String() string {
	if c > CacheShared {
		return "read-only"
	}
	return cacheNames[c]
}

// MarshalText writes the mode's name.
func (c CacheMode) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText accepts exactly the three names; otherwise c becomes read-only.
func (c *CacheMode) UnmarshalText(text []byte) error {
	i, err := unmarshalName("cache mode", cacheNames, text)
	*c = CacheMode(i)
	return err
}

// Resources are a session's limits. Zero means "no limit stated"; the default
// profile states all but CPU and disk.
type Resources struct {
	CPUShares  int64         `json:"cpu_shares,omitempty"`   // relative weight, 2 to 262144 (cgroup v1 cpu.shares)
	CPUs       float64       `json:"cpus,omitempty"`         // cores, for example 1.5
	MemoryMB   int64         `json:"memory_mb,omitempty"`    // MiB
	TmpMB      int64         `json:"tmp_mb,omitempty"`       // MiB of private /tmp, /run and /dev/shm, each
	PIDs       int64         `json:"pids_limit,omitempty"`   // processes and threads
	OpenFiles  int64         `json:"open_files,omitempty"`   // descriptors per process
	FileSizeMB int64         `json:"file_size_mb,omitempty"` // MiB of the largest file written
	Timeout    time.Duration `json:"-"`                      // wall clock of the whole session
}

// MarshalJSON writes the limits that are stated, by the names of the
// configuration; the timeout as it is written there, such as "2h0m0s".
func (r Resources) MarshalJSON() ([]byte, error) {
	type plain Resources
	out := struct {
		plain
		Timeout string `json:"timeout,omitempty"`
	}{plain: plain(r)}
	if r.Timeout != 0 {
		out.Timeout = r.Timeout.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes and nothing else.
func (r *Resources) UnmarshalJSON(data []byte) error {
	type plain Resources
	var in struct {
		plain
		Timeout string `json:"timeout"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(&in)
	if err == nil && in.Timeout != "" {
		in.plain.Timeout, err = time.ParseDuration(in.Timeout)
	}
	*r = Resources(in.plain)
	return err
}

// Egress says what a session with NetworkAllowlist reaches. Entries are in the
// forms of package netrule. The zero Egress reaches nothing.
type Egress struct {
	Hosts     []string      `json:"hosts,omitempty"`           // by name: "*.example.org:443"
	HTTP      []string      `json:"http,omitempty"`            // requests: "api.example.org GET /v1/**"; the host is opened
	Git       []string      `json:"git,omitempty"`             // repositories: "example.org fetch", "example.org push team/* refs/heads/x/*"
	Closed    []string      `json:"closed,omitempty"`          // hosts for which only entries that are no wider count; otherwise nobody is asked
	HostPorts []string      `json:"host_ports,omitempty"`      // of the host's own loopback: "5432"
	Ports     []string      `json:"ports,omitempty"`           // of the guest, published on the host's loopback: "8080:3000"
	Secrets   []string      `json:"secrets,omitempty"`         // names of the vault's secrets that may be put in; "*" is all bound ones
	SSHAgent  bool          `json:"ssh_agent,omitempty"`       // the human's ssh-agent signs logins to Hosts with port 22
	Proxy     string        `json:"proxy,omitempty"`           // the upstream proxy's URL, "" for that of the environment, or NoProxy
	Ask       time.Duration `json:"-"`                         // "ask_timeout": how long a connection waits for the human's answer; 0: nobody is asked
	Only      bool          `json:"only,omitempty"`            // what no entry names is refused, whatever other rules say, and nobody is asked
	MaxConns  int64         `json:"max_connections,omitempty"` // to one host at a time; 0: no limit stated
	MaxOutMB  int64         `json:"max_out_mb,omitempty"`      // sent to one host in the session, MiB; 0: no limit stated
	// MaxUses and MaxLentMB are how many requests, and how much in their bodies, may go
	// out with one secret before a human is asked again; 0: UsualUses and UsualLentMB.
	MaxUses   int64 `json:"max_secret_requests,omitempty"`
	MaxLentMB int64 `json:"max_secret_out_mb,omitempty"`
}

// The default budget of one secret of a session.
const (
	UsualUses   = 1000
	UsualLentMB = 64
)

// MarshalJSON writes what is stated, by the names of the configuration; the
// patience as it is written there, such as "30s".
func (e Egress) MarshalJSON() ([]byte, error) {
	type plain Egress
	out := struct {
		plain
		Ask string `json:"ask_timeout,omitempty"`
	}{plain: plain(e)}
	if e.Ask != 0 {
		out.Ask = e.Ask.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes and nothing else.
func (e *Egress) UnmarshalJSON(data []byte) error {
	type plain Egress
	var in struct {
		plain
		Ask string `json:"ask_timeout"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(&in)
	if err == nil && in.Ask != "" {
		in.plain.Ask, err = time.ParseDuration(in.Ask)
	}
	*e = Egress(in.plain)
	return err
}

// NoProxy is an Egress.Proxy that stands for no upstream proxy, whatever the
// environment says.
const NoProxy = "none"

// An Isolation is what a session may see and use. Its zero value has no
// writable path, no network, no environment and no device.
type Isolation struct {
	Profile   string // the name it was made from
	Workspace string // absolute; the session's working tree
	Mounts    []Mount
	Network   NetworkMode
	Egress    Egress   // for NetworkAllowlist
	Env       []string // names of variables passed through; a trailing * is a prefix
	SetEnv    []string // NAME=value
	Caches    CacheMode
	CacheDirs []string // absolute
	Resources Resources
	Devices   []string // names below /dev beyond the minimal set
	Protect   bool     // K6: files that the host executes later can't be written
	// Unprotected are names of those files that the user has opened for the project,
	// as internal/protect writes them.
	Unprotected []string
	// MaskEnv shows the guest placeholders in place of the secrets that files of the
	// workspace keep (.env and its kin).
	MaskEnv bool
	// LogPrograms has every program that the session starts recorded.
	LogPrograms bool
	DockerAPI   bool // a filtered Docker socket of the session's own
}

// Strength says how well a provider enforces one attribute. The zero Strength
// is not at all.
type Strength uint8

const (
	Unenforced Strength = iota
	Partly
	Enforced
)

var strengthNames = []string{"no", "partly", "enforced"}

// String returns "no", "partly" or "enforced".
func (s Strength) String() string {
	if s > Enforced {
		return "no"
	}
	return strengthNames[s]
}

// MarshalText writes the strength's name.
func (s Strength) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts exactly the three names; otherwise s becomes "no".
func (s *Strength) UnmarshalText(text []byte) error {
	n, err := unmarshalName("strength", strengthNames, text)
	*s = Strength(n)
	return err
}

// A Capability is one thing a provider can enforce, found by trying it on
// this machine.
type Capability struct {
	Attribute string   `json:"attribute"` // for example "fs.write", "limits.memory"
	Strength  Strength `json:"strength"`
	How       string   `json:"how,omitempty"`    // the mechanism, where enforced or partly
	Why       string   `json:"why,omitempty"`    // what is missing, where not
	Remedy    string   `json:"remedy,omitempty"` // the one command that mends it
}

// A GitDir is a repository of the host of which the guest writes a private git
// directory, so that no git of the host reads what the guest wrote.
type GitDir struct {
	Path    string       // the repository's common git directory, absolute, links resolved; Private is mounted over it
	Private string       // a directory of the host, the guest's to write
	Objects []GitObjects // object directories that the private one borrows from
}

// GitObjects is a directory of git objects of the host, shown to the guest
// read-only.
type GitObjects struct {
	Source string // absolute, on the host
	Target string // absolute, below /run/bawn: what objects/info/alternates names
}
