package supervise

import (
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Change is what somebody does with a name in a guest's place, once the guest
// has ended.
type Change uint8

// The zero Change is the one with the most against it.
const (
	ChangeLink   Change = iota // put a symbolic link in its place
	ChangePut                  // put a file in its place, whether there is one or not
	ChangeMake                 // make a directory
	ChangeRemove               // remove a file, a link or an empty directory
)

// An ApplyFilter rules on names as the supervisor of a session does while it lives.
// Nothing below a git directory is changed.
type ApplyFilter struct {
	names *layout.Protector
	dirs  map[string]gitHolds // by folded path
}

// NewApplyFilter is the filter of a plan's places, by the paths that the plan has.
func NewApplyFilter(plan *layout.Plan) *ApplyFilter {
	names := layout.NewProtector(plan.Protected, plan.ExtraNames, plan.OpenNames)
	names.Absent, names.Targets, names.Guarded, names.Places, names.Owned = plan.Absent, plan.Targets, plan.Guarded, plan.InHome, plan.Owned
	names.Projects, names.Denied, names.Open = plan.Projects, layout.Patterns(plan.Denied), plan.Unprotected
	return &ApplyFilter{names, map[string]gitHolds{}}
}

// Refuses returns the name of the rule that refuses a change of abs, an absolute
// and clean path, which is or becomes a directory or not; "" for none.
func (w *ApplyFilter) Refuses(c Change, abs string, isDir bool) string {
	for _, op := range operationsOf[c] {
		if r, rule := w.names.Rule(op, abs, isDir); r != layout.RulingAllow {
			return rule
		}
	}
	if !w.names.Open && w.inGit(abs) {
		return layout.RuleBare
	}
	return ""
}

// operationsOf are the operations that make up a change.
var operationsOf = [...][]layout.Operation{
	ChangeLink: {layout.OpSymlink, layout.OpRenameTo}, ChangePut: {layout.OpOpen, layout.OpRenameTo}, ChangeMake: {layout.OpMkdir}, ChangeRemove: {layout.OpRemove},
}
