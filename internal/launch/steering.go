package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/skill"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Rules by which what steers an agent is kept from it.
const (
	RuleSkillNew     = "builtin:skill-not-pinned"
	RuleSkillRefused = "builtin:skill-refused"
)

// Limits of the question about items that are not pinned: how many stand in one,
// and how long it waits.
const (
	maxSkillsAsked = 5
	skillsAsked    = 5 * time.Minute
)

// A steering is what steers the agent of one session.
type steering struct {
	launch  *Launch
	env     *Env
	session *runner.Session
	found   []skill.Item
	hidden  map[string]string // path → why
	details map[string]string // for the session's first event
	guard   guard.Guard
	answer  bawn.Answer // to the last question
}

// steer looks at the skills and definitions that the agent of a session would
// find. A pinned one stays readable, an unknown or changed one is asked about,
// and a refused one is hidden. Nothing in it can be written. A session whose
// agent is not known, or finds nothing, pays for looking.
func (u *setup) steer(s *runner.Session, req *sandbox.Request, unsandboxed bool) (*steering, error) {
	if u.Known == nil {
		return nil, nil
	}
	places := SkillPlaces(u.env, []*agents.Agent{u.Known.Agent}, req.Session.Isolation.Workspace, req.Dir)
	t := &steering{launch: u.Launch, env: u.env, session: s, found: skill.Find(places), hidden: map[string]string{}, details: map[string]string{}}
	if len(t.found) == 0 {
		return nil, nil
	}
	if err := t.judge(u.Plan); err != nil {
		return nil, err
	}
	if unsandboxed && len(t.hidden) > 0 {
		return nil, &verb.Error{Code: verb.ExitDenied, Err: errors.New(t.first()), Hint: "without a sandbox it can't be hidden: pin it (bawn skill pin), mend it or move it away"}
	}
	return t, t.enforce(req, places)
}

// judge decides what must be hidden. A plan asks nobody.
func (t *steering) judge(plan bool) error {
	file, err := SkillPins(t.env)
	if err != nil {
		return err
	}
	pins, err := skill.LoadPins(file)
	if err != nil {
		t.launch.note(t.env, err.Error()+"; until then nothing is pinned")
	}
	states := map[string]skill.State{}
	var open []skill.Item
	for _, i := range t.found {
		state := pins.State(i)
		states[i.Path] = state
		t.detail(i, state)
		switch {
		case i.Kind == skill.Instructions, state == skill.Pinned:
		case i.Fault != nil:
			t.hide(i, i.Fault.Error())
		case plan:
			t.hide(i, state.String()+"; a session asks, or wants it pinned")
		default:
			open = append(open, i)
		}
	}
	if plan || len(open) == 0 && len(t.hidden) == 0 {
		return nil
	}
	return t.decide(file, open, states)
}

// maxSteered bounds the items in the first event.
const maxSteered = 100

func (t *steering) detail(i skill.Item, state skill.State) {
	if len(t.details) >= maxSteered {
		return
	}
	text := state.String() + " " + i.Digest
	if i.Kind == skill.Instructions {
		text = "observed " + i.Digest
	}
	t.details[i.Kind.String()+" "+i.Path] = text
}

func (t *steering) hide(i skill.Item, why string) {
	t.hidden[i.Path] = fmt.Sprintf("%s %q is hidden: %s", i.Kind, i.Name, why)
}

// first is one of the reasons.
func (t *steering) first() string {
	paths := t.paths()
	return t.hidden[paths[0]]
}

func (t *steering) paths() []string {
	var paths []string
	for p := range t.hidden {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// decide reads items that are not pinned, asks, and has everything recorded.
func (t *steering) decide(pins string, open []skill.Item, states map[string]skill.State) error {
	dir, err := settings.AuditDir(&t.env.World)
	if err != nil {
		return err
	}
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("open the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	defer log.Close()
	t.guard = guard.Guard{Recorder: log}
	reports, err := Examine(t.env.Life(), t.env, open)
	if err != nil {
		t.launch.note(t.env, err.Error())
		for _, i := range open {
			t.hide(i, "it could not be read")
		}
	}
	fine := t.sound(open, reports)
	for _, p := range t.paths() {
		t.refuse(RuleSkillRefused, p, t.hidden[p])
		t.launch.note(t.env, t.hidden[p])
	}
	for part := range slices.Chunk(fine, maxSkillsAsked) {
		if err := t.ask(pins, part, states); err != nil {
			return err
		}
	}
	return nil
}

// sound are the items that may be used, if they are unchanged.
func (t *steering) sound(open []skill.Item, reports []skill.Report) (fine []skill.Report) {
	for _, i := range open {
		n := slices.IndexFunc(reports, func(r skill.Report) bool { return r.Path == i.Path && r.Kind == i.Kind })
		switch {
		case n < 0:
			t.hide(i, "it was not read")
		case reports[n].Refused() && len(reports[n].Faults) > 0:
			t.hide(i, reports[n].Faults[0].Error())
		case reports[n].Refused() || reports[n].Digest != i.Digest:
			t.hide(i, "it changed while it was read")
		default:
			fine = append(fine, reports[n])
		}
	}
	return fine
}

// refuse records that something is kept from the agent.
func (t *steering) refuse(rule, path, why string) {
	g := t.guard
	g.Decider = already(bawn.Denied(why, rule))
	g.Check(t.env.Life(), t.action(path, nil), t.event())
}

// already is a decision that was made before.
type already bawn.Decision

func (d already) Decide(context.Context, bawn.Action) (bawn.Decision, error) {
	return bawn.Decision(d), nil
}

func (t *steering) action(resource string, args []string) bawn.Action {
	s := t.session
	return bawn.Action{Kind: bawn.Tool, Operation: bawn.Read, Resource: "skill/" + resource, Args: args, Session: s.ID, Agent: s.Agent, Dir: s.Dir, At: time.Now()}
}

func (t *steering) event() bawn.Event {
	return bawn.Event{Parent: t.session.Parent, Provider: t.session.Session.Provider, Mode: t.session.Mode}
}

// ask puts new and changed items to the human. "Always" pins it.
func (t *steering) ask(pins string, part []skill.Report, states map[string]skill.State) error {
	var args []string
	var always []bawn.Rule
	changed := false
	for _, r := range part {
		changed = changed || states[r.Path] == skill.Changed
		args = append(args, words(&r, states[r.Path]))
		always = append(always, bawn.Rule{Kind: bawn.Tool, Operations: []bawn.Operation{bawn.Read}, Pattern: r.Kind.String() + " " + r.Name + " " + r.Digest, Verdict: bawn.Allow, Source: bawn.User})
	}
	why := "it steers the agent, and nobody has seen it here before"
	if changed {
		why = "it steers the agent, and has changed since it was pinned"
	}
	g := t.guard
	g.Decider = already{Verdict: bawn.Ask, Rule: RuleSkillNew, Source: bawn.Builtin, Reason: why}
	prompter, leave := t.prompter()
	defer leave()
	g.Approver = approverFunc(func(ctx context.Context, a bawn.Action, d bawn.Decision) (answer bawn.Answer, err error) {
		if prompter == nil {
			return bawn.Answer{}, errors.New("nobody is there to be asked")
		}
		t.answer, err = prompter.Request(ctx, approval.Question{
			Action: a, Reason: d.Reason, Rule: d.Rule, Always: always,
			Contains: "the agent follows it as far as the session lets it; it can't change it",
		})
		return t.answer, err
	})
	ctx, cancel := context.WithTimeout(t.env.Life(), skillsAsked)
	defer cancel()
	if d := g.Check(ctx, t.action(t.session.Agent, args), t.event()); d.Verdict != bawn.Allow {
		for i := range part {
			t.hide(part[i].Item, d.Reason+"; \"bawn skill check\" shows it, \"bawn skill pin\" lets it be used")
			t.launch.note(t.env, t.hidden[part[i].Path])
		}
		return nil
	}
	if t.answer.Scope != bawn.Always {
		return nil
	}
	return t.pin(pins, part)
}

// words describe an item to a human.
func words(r *skill.Report, state skill.State) string {
	text := fmt.Sprintf("%s %s %s (%s, %d files)", state, r.Kind, r.Name, r.Path, r.Files)
	if r.Description != "" {
		text += ": " + cutWords(r.Description, 150)
	}
	for _, n := range r.Notices {
		text += "; " + cutWords(n, 150)
	}
	return text
}

func cutWords(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

func (t *steering) pin(file string, part []skill.Report) error {
	var items []skill.Item
	for _, r := range part {
		items = append(items, r.Item)
	}
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = skill.Keep(file, t.answer.By, time.Now(), items...)
	}
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	return nil
}

// approverFunc is a bawn.Approver that is one function.
type approverFunc func(context.Context, bawn.Action, bawn.Decision) (bawn.Answer, error)

func (f approverFunc) Approve(ctx context.Context, a bawn.Action, d bawn.Decision) (bawn.Answer, error) {
	return f(ctx, a, d)
}

// prompter is where the question goes before there is a session: to the terminal,
// and to a relay that runs. It is nil if no human can answer.
func (t *steering) prompter() (prompter *asking.Prompter, leave func()) {
	e, l := t.env, t.launch
	state, err := settings.StateDir(&e.World)
	here := terminal.Present([3]*os.File{e.Stdin, e.Stdout, e.Stderr})
	if err != nil || !here && !relayRuns(e, state) {
		return nil, func() {}
	}
	s := t.session
	prompter = asking.New(asking.Options{
		Session: s.ID, Agent: s.Agent, Relay: relayOf(e, state, s.ID, s.Parent), Waiting: l.waiting(e),
		Note: func(text string) { l.note(e, text) },
	})
	if !here {
		return prompter, prompter.Close
	}
	tty, err := terminal.New([3]*os.File{}, nil) // it speaks over the controlling terminal
	if err != nil {
		return prompter, prompter.Close
	}
	if s.Dumb {
		tty.Plain()
	}
	stand := prompter.Sit(tty)
	return prompter, func() { stand(); prompter.Close(); tty.Close() }
}

// enforce hides items, and lets nothing be written where agents look. A link is
// hidden with the directory that holds it: its target may be somebody else's.
func (t *steering) enforce(req *sandbox.Request, places []skill.Place) error {
	iso := &req.Session.Isolation
	iso.Mounts = slices.Clone(iso.Mounts)
	req.Guarded = slices.Clone(req.Guarded)
	for _, p := range places {
		if p.Kind != skill.Instructions {
			req.Guarded = append(req.Guarded, p.Path)
		}
	}
	slices.Sort(req.Guarded)
	req.Guarded = slices.Compact(req.Guarded)
	for _, path := range t.paths() {
		at, err := hideable(path)
		if err != nil || fspath.Below(iso.Workspace, at) {
			return &verb.Error{Code: verb.ExitDenied, Err: errors.New(t.hidden[path]), Hint: "it can't be hidden where it lies: mend it or move it away"}
		}
		iso.Mounts = slices.DeleteFunc(iso.Mounts, func(m bawn.Mount) bool { return m.Path == at })
		iso.Mounts = append(iso.Mounts, bawn.Mount{Path: at, Access: bawn.Hidden, Why: t.hidden[path]})
	}
	t.session.Isolation = *iso
	return nil
}

// hideable is the place that has to be hidden for a path to be: itself, or, for
// a link, the directory that holds it.
func hideable(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		path = filepath.Dir(path)
	}
	return filepath.EvalSymlinks(path)
}

// tell adds to the session's first event what steers its agent.
func (t *steering) tell(details map[string]string) {
	if t == nil {
		return
	}
	for name, text := range t.details {
		details[strings.ToValidUTF8(name, "?")] = text
	}
}
