package policy

import (
	"strings"

	"github.com/bawn-dev/bawn"
)

// A Question is an action with all that its decision depends on: the same
// question has the same answer as long as the policy is the same.
type Question struct {
	Action    bawn.Action
	Mode      bawn.Mode
	Autonomy  bawn.Autonomy
	Contained bawn.Contained // what verified providers enforce where the action happens
	Covered   bool           // a checkpoint covers the files in danger
	// ConnectionAsks says that whatever leaves the session asks where it connects: no
	// host is let through without being looked into. Then the command need not ask.
	ConnectionAsks bool
	Workspace      string // absolute; "" means that nothing lies in one
	Home           string // absolute; "" means that "~" is unknown
	System         string // "linux", "darwin" or "windows"; "" means all of them
	Taint          Taint
	// Names are variables that a command line is executed with besides those
	// that every one has. Their values are taken for unknown, those of others
	// for empty.
	Names []string
	// Unprotected are names of the table that the user has opened for the workspace,
	// as protect.Key writes them.
	Unprotected []string
	// Copy says that the session works on a copy of the workspace. What would be protected
	// there against writing is held back when a human applies the copy.
	Copy bool
	// Project says that the workspace holds no home directory: names of logins count at
	// its top alone (protect.Login).
	Project bool
}

// Taint is what the session has read so far.
type Taint struct {
	Untrusted bool // it has read data that a stranger may have written
	Private   bool // it has read data that must not leave
}

// Any reports whether the session is tainted at all.
func (t Taint) Any() bool { return t.Untrusted || t.Private }

// AutonomyOf is the autonomy that a mode stands for.
func AutonomyOf(m bawn.Mode) bawn.Autonomy {
	switch m {
	case bawn.ModePlan:
		return bawn.AutonomyLimited
	case bawn.ModeSafe, bawn.ModeNormal, bawn.ModeAuto:
		return bawn.AutonomyModerate
	case bawn.ModePermissive:
		return bawn.AutonomyFull
	}
	return bawn.AutonomyNone
}

// ModeOf is the mode with the permissions of an autonomy, if only the autonomy
// was given.
func ModeOf(a bawn.Autonomy) bawn.Mode {
	switch a {
	case bawn.AutonomyModerate:
		return bawn.ModeNormal
	case bawn.AutonomyFull:
		return bawn.ModePermissive
	}
	return bawn.ModePlan
}

// key is a question as a map's key. Strings are set apart by their lengths,
// so that two questions never share one.
type key struct {
	resource, args, dir, workspace, home, system, names, unprotected string
	kind                                                             bawn.Kind
	operation                                                        bawn.Operation
	mode                                                             bawn.Mode
	autonomy                                                         bawn.Autonomy
	contained                                                        bawn.Contained
	covered, connectionAsks, copy, project                           bool
	taint                                                            Taint
}

func (q *Question) key() key {
	k := key{
		resource: q.Action.Resource, dir: q.Action.Dir, workspace: q.Workspace, home: q.Home, system: q.System,
		kind: q.Action.Kind, operation: q.Action.Operation, mode: q.Mode, autonomy: q.Autonomy,
		contained: q.Contained, covered: q.Covered, connectionAsks: q.ConnectionAsks, copy: q.Copy, project: q.Project, taint: q.Taint,
	}
	if len(q.Action.Args) > 0 {
		k.args = joined(q.Action.Args)
	}
	if len(q.Names) > 0 {
		k.names = joined(q.Names)
	}
	if len(q.Unprotected) > 0 {
		k.unprotected = joined(q.Unprotected)
	}
	return k
}

// joined writes words so that no two lists read the same: no word of an argv
// holds a NUL, and one that does is not cached (see Decide).
func joined(words []string) string { return "\x00" + strings.Join(words, "\x00") }
