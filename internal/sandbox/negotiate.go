package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Attributes of an isolation, as capabilities name them.
const (
	FSWrite       = "fs.write"      // writes only where the isolation says
	FSRead        = "fs.read"       // hidden paths can't be read
	FSPatterns    = "fs.patterns"   // files that match patterns of isolation.deny are neither read nor made
	FSProtect     = "fs.protect"    // K6: files the host executes later
	FSPrivate     = "fs.private"    // /tmp, /run, /dev/shm of the session's own
	Processes     = "processes"     // other processes invisible, tree ends with the session
	IPC           = "ipc"           // no System V, POSIX or UNIX socket channel to the host
	Kernel        = "kernel"        // system calls filtered, no capability, no nesting
	Terminal      = "terminal"      // the guest never holds the user's terminal
	NetNone       = "net.none"      //
	NetAllow      = "net.allowlist" //
	NetFull       = "net.full"      //
	LimitMemory   = "limits.memory" //
	LimitPIDs     = "limits.pids"   //
	LimitCPU      = "limits.cpu"    //
	LimitFiles    = "limits.files"  // open files
	LimitFileSize = "limits.size"   // size of one file
	LimitTime     = "limits.time"   //
	DevicesByName = "devices"       //
)

// Attributes lists all of them.
func Attributes() []string {
	return []string{
		FSWrite, FSRead, FSPatterns, FSProtect, FSPrivate, Processes, IPC, Kernel, Terminal, NetNone, NetAllow, NetFull,
		LimitMemory, LimitPIDs, LimitCPU, LimitFiles, LimitFileSize, LimitTime, DevicesByName,
	}
}

// IsLimit reports whether an attribute is a limit of resources, not a wall.
func IsLimit(attribute string) bool { return strings.HasPrefix(attribute, "limits.") }

// Needs lists the attributes an isolation asks for.
func Needs(iso bawn.Isolation) []string {
	needs := []string{FSWrite, FSRead, FSPrivate, Processes, IPC, Kernel, Terminal}
	add := func(cond bool, attribute string) {
		if cond {
			needs = append(needs, attribute)
		}
	}
	add(slices.ContainsFunc(iso.Mounts, IsPattern), FSPatterns)
	add(iso.Protect, FSProtect)
	add(iso.Network == bawn.NetworkNone, NetNone)
	add(iso.Network == bawn.NetworkAllowlist, NetAllow)
	add(iso.Network == bawn.NetworkFull, NetFull)
	r := iso.Resources
	add(r.MemoryMB > 0, LimitMemory)
	add(r.PIDs > 0, LimitPIDs)
	add(r.CPUs > 0 || r.CPUShares > 0, LimitCPU)
	add(r.OpenFiles > 0, LimitFiles)
	add(r.FileSizeMB > 0, LimitFileSize)
	add(r.Timeout > 0, LimitTime)
	add(len(iso.Devices) > 0, DevicesByName)
	return needs
}

// A MismatchError lists every attribute a provider can't enforce.
type MismatchError struct {
	Provider string
	Unmet    []bawn.Capability
	Others   map[string][]string // attribute → providers that could
}

// Error has a line for each reason, with what it stands in the way of and who
// could.
func (e *MismatchError) Error() string {
	reason := func(c bawn.Capability) string { return strings.TrimSuffix(c.Why+"; "+c.Remedy, "; ") }
	var b strings.Builder
	fmt.Fprintf(&b, "provider %q can't enforce what this session asks for:", e.Provider)
	for _, group := range alike(e.Unmet, reason) {
		fmt.Fprintf(&b, "\n  %s: %s%s", attributesOf(group), reason(group[0]), e.could(group))
	}
	return b.String()
}

// could names the others that enforce attributes of a group, and which, where
// that is not all of it.
func (e *MismatchError) could(group []bawn.Capability) string {
	var names, parts []string
	between := ", "
	has := map[string][]bawn.Capability{}
	for _, c := range group {
		for _, name := range e.Others[c.Attribute] {
			if has[name] == nil {
				names = append(names, name)
			}
			has[name] = append(has[name], c)
		}
	}
	for _, name := range names {
		if len(has[name]) < len(group) {
			name += " only " + attributesOf(has[name])
			between = "; "
		}
		parts = append(parts, name)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (could: " + strings.Join(parts, between) + ")"
}

// alike puts those together of which key says the same, in the order of the
// first ones.
func alike(list []bawn.Capability, key func(bawn.Capability) string) (groups [][]bawn.Capability) {
	at := map[string]int{}
	for _, c := range list {
		i, ok := at[key(c)]
		if !ok {
			i = len(groups)
			at[key(c)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

func attributesOf(list []bawn.Capability) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Attribute
	}
	return strings.Join(names, ", ")
}

// Negotiate returns what provider p enforces only in part for iso, or a
// *MismatchError that names everything it can't enforce at all and who of
// others could. It never weakens the isolation.
func Negotiate(iso bawn.Isolation, p Provider, others ...Provider) ([]bawn.Capability, error) {
	have := index(p.Capabilities())
	var partly, unmet []bawn.Capability
	for _, attribute := range Needs(iso) {
		c, ok := have[attribute]
		switch {
		case !ok:
			unmet = append(unmet, bawn.Capability{Attribute: attribute, Why: "this provider does not know it"})
		case c.Strength == bawn.Partly:
			partly = append(partly, c)
		case c.Strength != bawn.Enforced:
			unmet = append(unmet, c)
		}
	}
	if len(unmet) == 0 {
		return partly, nil
	}
	return nil, &MismatchError{Provider: p.Name(), Unmet: unmet, Others: whoCould(unmet, others)}
}

func index(caps []bawn.Capability) map[string]bawn.Capability {
	m := make(map[string]bawn.Capability, len(caps))
	for _, c := range caps {
		m[c.Attribute] = c
	}
	return m
}

func whoCould(unmet []bawn.Capability, others []Provider) map[string][]string {
	m := map[string][]string{}
	for _, p := range others {
		have := index(p.Capabilities())
		for _, c := range unmet {
			if have[c.Attribute].Strength == bawn.Enforced {
				m[c.Attribute] = append(m[c.Attribute], p.Name())
			}
		}
	}
	return m
}
