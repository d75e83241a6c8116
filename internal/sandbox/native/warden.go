package native

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

// A Warden rules on names as the supervisor of a session does while it lives.
// Nothing below a git directory is changed.
type Warden struct {
	names *protector
	dirs  map[string]gitHolds // by folded path
}

// NewWarden is the warden of a plan's places, by the paths that the plan has.
func NewWarden(plan *Plan) *Warden {
	names := newProtector(plan.Protected, plan.ExtraNames, plan.OpenNames)
	names.absent, names.targets, names.guarded, names.places, names.owned = plan.Absent, plan.Targets, plan.Guarded, plan.InHome, plan.Owned
	names.denied, names.open = patterns(plan.Denied), plan.Unprotected
	return &Warden{names, map[string]gitHolds{}}
}

// Refuses returns the name of the rule that refuses a change of abs, an absolute
// and clean path, which is or becomes a directory or not; "" for none.
func (w *Warden) Refuses(c Change, abs string, isDir bool) string {
	for _, op := range operationsOf[c] {
		if r, rule := w.names.rule(op, abs, isDir); r != rulingAllow {
			return rule
		}
	}
	if !w.names.open && w.inGit(abs) {
		return RuleBare
	}
	return ""
}

// operationsOf are what a change is made of.
var operationsOf = [...][]operation{
	ChangeLink: {opSymlink, opRenameTo}, ChangePut: {opOpen, opRenameTo}, ChangeMake: {opMkdir}, ChangeRemove: {opRemove},
}
