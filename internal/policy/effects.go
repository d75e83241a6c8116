package policy

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// An Effect is a row of the decision table: an action's effect, and on whom. The
// zero Effect is invalid and is denied in every mode.
type Effect uint8

// The rows, in the order of the table.
const (
	_           Effect = iota
	Read               // looks and changes nothing
	Change             // changes files, runs a program, destroys files that a checkpoint covers
	Destroy            // destroys what no checkpoint covers
	NewHost            // reaches a host that no entry names
	Download           // takes from a host that is allowed
	Upload             // sends to a host that is allowed, or shows it a foreign login
	SecretRead         // puts a secret into a request that reads
	SecretWrite        // puts a secret into a request that changes
	Publish            // push, publish, deploy, mail
	Force              // force, delete elsewhere, production
	Open               // a port of the host, a published port, a device, Docker beyond the flags
	Protected          // protected names, Bawn's state, credentials
)

// A Cell is the table's entry for one effect in one mode.
type Cell struct {
	Verdict bawn.Verdict
	Note    string // the scope of the verdict, or its condition
}

// A Row is one effect of the table. Its needs must be contained; otherwise the
// last column decides, and the mode's own cell where it is stricter.
type Row struct {
	Effect      Effect
	Name        string
	Needs       bawn.Contained
	Strict      Cell
	Plan        Cell
	Safe        Cell
	Normal      Cell
	Permissive  Cell
	Uncontained Cell
}

const (
	deny  = bawn.Deny
	ask   = bawn.Ask
	allow = bawn.Allow
)

// The cells that occur.
var (
	no        = Cell{deny, ""}
	asks      = Cell{ask, ""}
	yes       = Cell{allow, ""}
	kernel    = Cell{allow, "the kernel refuses changes of the workspace"}
	workspace = Cell{ask, "one yes counts for the workspace"}
	model     = Cell{deny, "only the model's hosts are reached"}
	binding   = Cell{ask, "one yes counts for the binding and the operation"}
	single    = Cell{ask, "a yes counts once"}
	listed    = Cell{allow, "only programs of the closed list of readers"}
)

var (
	programs = bawn.Contained{Files: true, Processes: true}
	files    = bawn.Contained{Files: true}
	network  = bawn.Contained{Network: true}
)

// Table is the one rule that decides (docs/policy.md). An effect that the kernel
// contains needs no question; one that crosses the boundary asks. Mode auto has
// permissive's column, where risk only tightens.
var Table = []Row{
	//                                              strict  plan    safe  normal     permissive  uncontained
	{Read, "read", files, asks, yes, yes, yes, yes, listed},
	{Change, "change files or run a program", programs, asks, kernel, asks, yes, yes, asks},
	{Destroy, "destroy what no checkpoint covers", programs, asks, no, asks, workspace, workspace, asks},
	{NewHost, "reach a new host", network, asks, model, asks, asks, asks, asks},
	{Download, "download from an allowed host", network, asks, yes, yes, yes, yes, asks},
	{Upload, "upload to an allowed host", network, asks, no, asks, asks, asks, asks},
	{SecretRead, "use a secret for reading", network, asks, model, yes, yes, yes, asks},
	{SecretWrite, "use a secret for a change", network, asks, no, asks, binding, binding, asks},
	{Publish, "push, publish, deploy or send mail", network, asks, no, asks, asks, asks, asks},
	{Force, "force, delete elsewhere, or change production", network, single, no, single, single, single, single},
	{Open, "open a port, a device or Docker", programs, asks, no, asks, asks, asks, asks},
	{Protected, "touch a protected name", bawn.Contained{}, no, no, no, no, no, no},
}

// String returns the row's name, or "invalid".
func (e Effect) String() string {
	if r := e.row(); r != nil {
		return r.Name
	}
	return "invalid"
}

func (e Effect) row() *Row {
	if e == 0 || int(e) > len(Table) {
		return nil
	}
	return &Table[e-1]
}

// mode returns the cell of a mode's column. An unknown mode is denied.
func (r *Row) mode(m bawn.Mode) Cell {
	switch m {
	case bawn.ModeStrict:
		return r.Strict
	case bawn.ModePlan:
		return r.Plan
	case bawn.ModeSafe:
		return r.Safe
	case bawn.ModeNormal:
		return r.Normal
	case bawn.ModeAuto, bawn.ModePermissive:
		return r.Permissive
	}
	return no
}

// Contains reports whether a session contains an effect.
func (e Effect) Contains(c bawn.Contained) bool {
	r := e.row()
	return r != nil && c.Has(r.Needs)
}

// Lookup returns the table's entry for an effect. It denies an unknown mode or effect.
func Lookup(mode bawn.Mode, e Effect, c bawn.Contained) Cell {
	r := e.row()
	if r == nil {
		return no
	}
	cell := r.mode(mode)
	if c.Has(r.Needs) {
		return cell
	}
	if cell == kernel { // no kernel refuses anything there
		return no
	}
	if r.Uncontained.Verdict < cell.Verdict || cell.Verdict == ask && r.Uncontained.Verdict == ask {
		return r.Uncontained
	}
	return cell
}

// reach says what a yes to a question is for, if the cell says so and only the named
// stages have asked.
func (j *judgement) reach(c Cell, what func() string, stages ...string) {
	switch {
	case j.verdict != ask:
	case c == single:
		j.single = true
	case (c == workspace || c == binding) && j.askedOnly(stages):
		j.holds = what()
	}
}

// askedOnly reports whether no stage but those named has asked.
func (j *judgement) askedOnly(stages []string) bool {
	return !slices.ContainsFunc(j.steps[1:], func(s bawn.Step) bool { return s.Verdict == ask && !slices.Contains(stages, s.Stage) })
}

// destroying is the scope of a yes to destruction in a workspace.
func (q *Question) destroying() string {
	return "destroying what no checkpoint covers in " + strconv.Quote(q.Workspace)
}

// A reasonKey selects a reason of the table.
type reasonKey struct {
	mode      bawn.Mode
	effect    Effect
	contained bawn.Contained
	note      string
	allows    bool
}

// reasons holds those of the table that were given: there are some hundred in all.
var reasons = struct {
	sync.RWMutex
	texts map[reasonKey]string
}{texts: map[reasonKey]string{}}

// why says how the table came to a cell.
func (q *Question) why(e Effect, c Cell) string {
	k := reasonKey{q.Mode, e, q.Contained, c.Note, c.Verdict == allow}
	reasons.RLock()
	text := reasons.texts[k]
	reasons.RUnlock()
	if text != "" {
		return text
	}
	if text = q.reason(e, c); q.Mode > bawn.ModePermissive || e > Protected {
		return text
	}
	reasons.Lock()
	defer reasons.Unlock()
	reasons.texts[k] = text
	return text
}

func (q *Question) reason(e Effect, c Cell) string {
	text := q.Mode.String() + " mode: " + e.String()
	switch r := e.row(); {
	case r != nil && e != Protected && !q.Contained.Has(r.Needs):
		text += ", not contained (" + strings.Join(q.Contained.Missing(r.Needs), ", ") + ")"
	case r != nil && c.Verdict == allow && e == Change:
		text += ", contained by a verified sandbox"
	}
	if c.Note != "" {
		text += ": " + c.Note
	}
	return text
}
