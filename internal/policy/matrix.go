package policy

import "github.com/bawn-dev/bawn"

// A Class sorts actions by what they can do to whom (SPEC K9). The zero Class
// is no class and is denied in every mode.
type Class uint8

// The classes, from the least to the most that can go wrong.
const (
	_              Class = iota
	ReadOnly             // looks and changes nothing
	RemoteAction         // reaches a service on the network
	LocalMutation        // changes the project
	Destructive          // destroys what can't be had back
	OutsideProject       // touches what is not the project's
)

var classNames = [...]string{"invalid", "read-only", "remote action", "local mutation", "destructive", "outside project"}

// String returns the class's name, or "invalid".
func (c Class) String() string {
	if int(c) >= len(classNames) {
		return classNames[0]
	}
	return classNames[c]
}

const (
	deny  = bawn.Deny
	ask   = bawn.Ask
	allow = bawn.Allow
)

// matrix holds a mode's verdicts in the order of the classes. Plan, safe and
// auto are Koda's trust modes; strict, normal and permissive are Coder's modes
// in the same terms (SPEC K9, C9). What is dangerous, protected or outside the
// project is never silent in any of them.
var matrix = map[bawn.Mode][len(classNames)]bawn.Verdict{
	//                    -     read   remote local  destr. outside
	bawn.ModePlan:       {deny, allow, deny, deny, deny, deny},
	bawn.ModeStrict:     {deny, ask, ask, ask, ask, ask},
	bawn.ModeSafe:       {deny, allow, ask, ask, ask, ask},
	bawn.ModeNormal:     {deny, allow, ask, ask, ask, ask},
	bawn.ModeAuto:       {deny, allow, allow, allow, ask, ask},
	bawn.ModePermissive: {deny, allow, allow, allow, ask, ask},
}

// Matrix returns the verdict of a mode on a class if no rule decides. It denies an
// unknown mode or class.
func Matrix(mode bawn.Mode, c Class) bawn.Verdict {
	row := matrix[mode]
	if int(c) >= len(row) {
		return deny
	}
	return row[c]
}
