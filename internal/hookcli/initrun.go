package hookcli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/hooksetup"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

// An initiation is one run of "bawn init".
type initiation struct {
	env   *launch.Env
	flags initFlags
	setup hooksetup.Setup
	seen  []initiated
	in    *bufio.Reader // of the human's answers
	quiet bool          // about how to take it back: the guide says it once
}

func newInitiation(e *launch.Env, f initFlags, s hooksetup.Setup) initiation {
	return initiation{env: e, flags: f, setup: s, in: bufio.NewReader(e.Stdin)}
}

// initiated is one agent in it.
type initiated struct {
	agent *agents.Agent
	found *hooksetup.Found
	plan  hooksetup.Plan
	err   error
	// without says that the agent has no hooks at this level, which is no
	// failure unless it was named.
	without bool
}

// notInPlace is the exit code of --check where something is missing.
const notInPlace = verb.Status(1)

func (i *initiation) look(a *agents.Agent) {
	n := initiated{agent: a}
	if found, ok := i.setup.Find(a); ok {
		n.found = &found
	}
	if i.flags.undo {
		n.plan, n.err = i.setup.Undo(a, i.flags.level())
	} else {
		n.plan, n.err = i.setup.Plan(a, i.flags.level())
	}
	n.without = errors.As(n.err, new(*hooksetup.NoHooksError))
	silent := i.flags.undo || i.flags.managed
	if n.without && silent && len(i.flags.agents) == 0 {
		return
	}
	if n.err != nil {
		n.err = initError(n.err)
	}
	i.seen = append(i.seen, n)
}

func (i *initiation) run() error {
	switch {
	case i.flags.asJSON:
		return i.runJSON()
	case i.flags.check:
		return i.report()
	}
	i.show()
	if i.changes() == 0 {
		if err := i.failure(); err != nil {
			return err
		}
		fmt.Fprintln(i.env.Stdout, i.nothing())
		return nil
	}
	if i.flags.dryRun {
		return i.failure()
	}
	if !i.flags.yes {
		yes, err := i.ask()
		if err != nil || !yes {
			fmt.Fprintln(i.env.Stdout, "nothing was written")
			return err
		}
	}
	if err := i.apply(); err != nil {
		return err
	}
	i.done()
	return i.failure()
}

// changes counts the files that would be written.
func (i *initiation) changes() (n int) {
	for _, s := range i.seen {
		for _, e := range s.plan.Edits {
			if e.Changes() {
				n++
			}
		}
	}
	return n
}

func (i *initiation) nothing() string {
	if i.flags.undo {
		return "there is nothing to take back"
	}
	return "all is in place; nothing to write"
}

// failure is the first agent's that could not be set up.
func (i *initiation) failure() error {
	for _, s := range i.seen {
		if s.err != nil && (!s.without || len(i.flags.agents) > 0) {
			return s.err
		}
	}
	return nil
}

// apply writes the shown edits, agent by agent. Their undo is recorded even if
// nothing changes.
func (i *initiation) apply() error {
	for _, s := range i.seen {
		if s.err != nil {
			continue
		}
		if err := i.setup.Apply(s.plan); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "what was written before it stands; \"bawn init --undo\" takes it back"}
		}
	}
	return nil
}

func (i *initiation) ask() (bool, error) {
	if i.flags.undo {
		return i.answer("\ntake this back?")
	}
	return i.answer("\nwrite " + files(i.changes()) + "?")
}

// answer asks a question, to which anything but a yes is a no.
func (i *initiation) answer(question string) (bool, error) {
	fmt.Fprintf(i.env.Stdout, "%s [y/N] ", question)
	line, err := i.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

func files(n int) string {
	if n == 1 {
		return "this file"
	}
	return fmt.Sprintf("these %d files", n)
}

// show prints each agent with what would be written.
func (i *initiation) show() {
	for _, s := range i.seen {
		if i.flags.undo && s.err == nil && !s.plan.Changes() {
			continue
		}
		fmt.Fprintln(i.env.Stdout, s.title())
		if s.err != nil {
			i.say("  ", failureWords(s.err))
			continue
		}
		for _, e := range s.plan.Edits {
			i.edit(e)
		}
		if !i.flags.undo {
			i.remarks(s)
		}
	}
}

func (i *initiation) edit(e hooksetup.Edit) {
	switch e.Change() {
	case hooksetup.None:
		i.say("  as it should be: ", e.Path)
	case hooksetup.Remove:
		i.say("  remove ", e.Path)
	default:
		fmt.Fprint(i.env.Stdout, indented(e.Diff()))
	}
}

// remarks list what hooks don't do: everything if something is written, and
// otherwise the problems here.
func (i *initiation) remarks(s initiated) {
	if s.plan.Agent == hooksetup.ShellName {
		return
	}
	if !s.plan.Changes() {
		for _, r := range append(s.plan.Remarks, i.setup.Off(s.agent)...) {
			i.say("  note: ", r)
		}
		i.say("  uncovered: ", "see \"bawn agents "+s.agent.Name+"\"")
		return
	}
	for _, r := range i.heeds(s) {
		i.say("  note: ", r)
	}
	for _, u := range s.agent.Uncovered {
		i.say("  uncovered: ", u)
	}
}

// heeds are notes and tasks for the human.
func (i *initiation) heeds(s initiated) []string {
	all := append(s.plan.Remarks, i.setup.Off(s.agent)...)
	h := s.agent.Hooks
	if !h.Rewrite {
		all = append(all, "its hooks can't exchange a command, so that outside of \"bawn run\" only what the policy allows without a sandbox runs")
	}
	switch {
	case !h.Rewrite:
	case i.setup.Stay:
		all = append(all, "an allowed command runs as it stands, so that all but those which only read are asked about")
	default:
		all = append(all, "an allowed command runs in a sandbox of its own, and what it leaves running ends with it; --no-sandbox leaves commands where they are, and most are asked about then")
	}
	if h.FailsOpen {
		all = append(all, "it goes on where a hook comes too late, or is killed with its shell: run it as \"bawn run -- "+s.agent.Programs[0]+"\"")
	}
	switch {
	case !s.agent.Verified:
		all = append(all, "this follows its documentation; it has not been tried with the program itself")
	case s.found != nil && s.found.Version != "" && s.found.Version != s.agent.Version:
		all = append(all, fmt.Sprintf("this was tried with version %s, and %s is installed", s.agent.Version, s.found.Version))
	}
	return all
}

func (i *initiation) say(prefix, words string) {
	fmt.Fprintf(i.env.Stdout, "%s%s\n", prefix, redact.Visible(words))
}

// title names the agent and where it is.
func (s initiated) title() string {
	switch {
	case s.found == nil:
		return s.agent.Title + " (not found)"
	case s.found.Version == "":
		return fmt.Sprintf("%s (%s)", s.agent.Title, redact.Visible(s.found.Path))
	}
	return fmt.Sprintf("%s %s (%s)", s.agent.Title, redact.Visible(s.found.Version), redact.Visible(s.found.Path))
}

func failureWords(err error) string {
	var ce *verb.Error
	if errors.As(err, &ce) && ce.Hint != "" {
		return err.Error() + "; " + ce.Hint
	}
	return err.Error()
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// report is --check.
func (i *initiation) report() error {
	ready := true
	for _, s := range i.seen {
		word := "in place"
		switch {
		case s.err != nil:
			word, ready = failureWords(s.err), false
		case s.plan.Changes():
			word, ready = "not in place: \"bawn init\" would write "+strings.Join(s.missing(), ", "), false
		}
		if off := i.setup.Off(s.agent); s.err == nil && len(off) > 0 {
			word, ready = "switched off: "+off[0], false
		}
		i.say(s.agent.Name+": ", word)
	}
	if !ready {
		return notInPlace
	}
	return nil
}

// missing are the files that are not as they should be.
func (s initiated) missing() (paths []string) {
	for _, e := range s.plan.Edits {
		if e.Changes() {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

func (i *initiation) done() {
	if i.flags.undo {
		fmt.Fprintln(i.env.Stdout, "taken back")
		return
	}
	if i.quiet {
		fmt.Fprintln(i.env.Stdout, "written")
		return
	}
	fmt.Fprintln(i.env.Stdout, "written; agents that run already see it when they start again\n\"bawn init --undo\" takes it back, \"bawn init --check\" says whether it still stands")
	if i.flags.level() == hooksetup.Project {
		fmt.Fprintln(i.env.Stdout, "the files name the bawn of this machine: keep them out of commits")
	}
}

// initJSON is one agent in the output of --json.
type initJSON struct {
	Name      string           `json:"name"`
	Title     string           `json:"title"`
	Installed *hooksetup.Found `json:"installed"`
	Files     []initFileJSON   `json:"files"`
	Notes     []string         `json:"notes"`
	Uncovered []string         `json:"uncovered"`
	Error     string           `json:"error,omitempty"`
}

type initFileJSON struct {
	Path   string           `json:"path"`
	Change hooksetup.Change `json:"change"`
	Diff   string           `json:"diff,omitempty"`
}

func (i *initiation) runJSON() error {
	out := struct {
		Level   hooksetup.Level `json:"level"`
		Undo    bool            `json:"undo"`
		Written bool            `json:"written"`
		Agents  []initJSON      `json:"agents"`
	}{Level: i.flags.level(), Undo: i.flags.undo, Agents: []initJSON{}}
	inPlace := true
	for _, s := range i.seen {
		n := initJSON{Name: s.agent.Name, Title: s.agent.Title, Installed: s.found, Files: []initFileJSON{}, Notes: append([]string{}, i.heeds(s)...), Uncovered: append([]string{}, s.agent.Uncovered...)}
		for _, e := range s.plan.Edits {
			f := initFileJSON{Path: e.Path, Change: e.Change()}
			if e.Changes() {
				f.Diff = e.Diff()
			}
			n.Files = append(n.Files, f)
		}
		if s.err != nil {
			n.Error = failureWords(s.err)
		}
		inPlace = inPlace && s.err == nil && !s.plan.Changes() && len(i.setup.Off(s.agent)) == 0
		out.Agents = append(out.Agents, n)
	}
	if i.flags.yes {
		if err := i.apply(); err != nil {
			return err
		}
		out.Written = true
	}
	if err := verb.WriteJSON(i.env.Stdout, out); err != nil {
		return err
	}
	if i.flags.check && !inPlace {
		return notInPlace
	}
	return i.failure()
}
