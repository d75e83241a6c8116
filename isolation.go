package bawn

import (
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
	if r.Timeout > 0 {
		out.Timeout = r.Timeout.String()
	}
	return json.Marshal(out)
}

// An Isolation is what a session may see and use. Its zero value has no
// writable path, no network, no environment and no device.
type Isolation struct {
	Profile   string // the name it was made from
	Workspace string // absolute; the session's working tree
	Mounts    []Mount
	Network   NetworkMode
	Hosts     []string // for NetworkAllowlist
	Env       []string // names of variables passed through; a trailing * is a prefix
	SetEnv    []string // NAME=value
	Caches    CacheMode
	CacheDirs []string // absolute
	Resources Resources
	Devices   []string // names below /dev beyond the minimal set
	Protect   bool     // K6: files that the host executes later can't be written
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
