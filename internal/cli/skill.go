package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/skill"
	"github.com/bawn-dev/bawn/internal/verb"
)

// newSkillCommand hands its words to bawnd, which reads Markdown and YAML: not
// every bawn run should pay for their start.
func newSkillCommand(e *launch.Env) *cobra.Command {
	const short = "Check and pin what steers agents: skills and definitions of agents"
	const example = "  bawn skill check            # everything that agents find here\n" +
		"  bawn skill check ./my-skill # one, before it is installed\n" +
		"  bawn skill pin --all        # what you have read\n" +
		"  bawn skill list"
	if e.CheckSkill == nil {
		return delegate(e, "skill", short, example)
	}
	c := &cobra.Command{Use: "skill", Short: short, Example: example, Args: verb.OnlyCommands, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(newSkillCheckCommand(e), newSkillListCommand(e), newSkillPinCommand(e), newSkillRmCommand(e))
	return c
}

func newSkillCheckCommand(e *launch.Env) *cobra.Command {
	var kind string
	var asJSON bool
	c := &cobra.Command{
		Use:     "check [PATH...]",
		Short:   "Read skills strictly, and say what is wrong with them and where",
		Long:    "Read skills and definitions of agents as strictly as a session does: front matter of known keys and CommonMark, no HTML,\nnothing that loads or runs something while it is read, nothing that a reader does not see. Without PATH everything that the\nknown agents find here is read. Ends with 126 where something is refused.",
		Example: "  bawn skill check\n  bawn skill check ~/.claude/skills/commit\n  bawn skill check --kind definition reviewer.md --json",
		RunE: func(_ *cobra.Command, args []string) error {
			items, err := skillItems(e, kind, args)
			if err != nil {
				return err
			}
			return checkSkills(e, items, asJSON)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "what PATH is: skill, definition or instructions (default: by its name)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	verb.CompleteFlags(c, map[string]func() []string{"kind": verb.Fixed("skill", "definition", "instructions")})
	return c
}

// skillItems are those that paths name, or all that agents find here.
func skillItems(e *launch.Env, kind string, paths []string) ([]skill.Item, error) {
	if len(paths) == 0 {
		return foundSkills(e)
	}
	var items []skill.Item
	for _, p := range paths {
		i := skill.Item{Path: settings.Absolute(&e.World, p)}
		if i.Kind = kindOf(i.Path); kind != "" {
			if err := i.Kind.UnmarshalText([]byte(kind)); err != nil {
				return nil, verb.Usage("see \"bawn skill --help\"", "--kind: %v", err)
			}
		}
		if filepath.Base(i.Path) == "SKILL.md" {
			i.Path = filepath.Dir(i.Path)
		}
		if _, err := os.Lstat(i.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, verb.Usage("name a folder with a SKILL.md, or a file", "%q does not exist", p)
		}
		i.Name = skill.NameOf(i.Path)
		items = append(items, i)
	}
	return items, nil
}

// kindOf is the kind of a path by its name.
func kindOf(path string) skill.Kind {
	base := strings.ToLower(filepath.Base(path))
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir(), base == "skill.md", filepath.Base(filepath.Dir(path)) == "skills":
		return skill.Skill
	case slices.Contains([]string{"agents.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "crush.md"}, base):
		return skill.Instructions
	}
	return skill.Definition
}

// foundSkills is all that the known agents find here.
func foundSkills(e *launch.Env) ([]skill.Item, error) {
	dir, err := settings.RealDir(e.Dir)
	if err != nil {
		return nil, err
	}
	return skill.Find(launch.SkillPlaces(e, agents.All(), settings.WorkspaceOf(dir, e.Getenv("HOME")), dir)), nil
}

// readItems has items read, with their states.
func readItems(e *launch.Env, items []skill.Item) ([]launch.SkillReport, error) {
	pins, err := pinsOf(e)
	if err != nil {
		return nil, err
	}
	reports, err := launch.Examine(context.Background(), e, items)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	out := make([]launch.SkillReport, len(reports))
	for i, r := range reports {
		out[i] = launch.SkillReport{Report: r, State: pins.State(r.Item), Refused: r.Refused()}
	}
	return out, nil
}

// pinsOf are the human's pins. A guest sees none of it.
func pinsOf(e *launch.Env) (*skill.Pins, error) {
	if launch.Inside(e) != "" {
		return &skill.Pins{}, nil
	}
	file, err := launch.SkillPins(e)
	if err != nil {
		return nil, err
	}
	pins, err := skill.LoadPins(file)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err}
	}
	return pins, nil
}

func checkSkills(e *launch.Env, items []skill.Item, asJSON bool) error {
	reports, err := readItems(e, items)
	if err != nil {
		return err
	}
	if asJSON {
		err = verb.WriteJSON(e.Stdout, launch.SkillReports{Items: append([]launch.SkillReport{}, reports...)})
	} else {
		if len(reports) == 0 {
			nothingSteers(e)
		}
		for i := range reports {
			printReport(e, &reports[i])
		}
	}
	if err == nil && slices.ContainsFunc(reports, func(r launch.SkillReport) bool { return r.Refused }) {
		return verb.Status(verb.ExitDenied)
	}
	return err
}

// nothingSteers says that there is nothing to list.
func nothingSteers(e *launch.Env) {
	fmt.Fprintln(e.Stderr, "bawn: note: no skill, agent definition or instruction file of a known agent was found here or in your home; \"bawn agents NAME\" lists the places")
}

// printReport writes an item on one line, and below it what there is to say.
func printReport(e *launch.Env, r *launch.SkillReport) {
	verdict := "ok"
	if r.Refused {
		verdict = "refused"
	}
	fmt.Fprintf(e.Stdout, "%-8s %-8s %-12s %s\n", verdict, r.State, r.Kind, redact.Visible(r.Path))
	for _, f := range r.Faults {
		fmt.Fprintf(e.Stdout, "    %v\n", f)
	}
	if r.Refused {
		return
	}
	for _, n := range r.Notices {
		fmt.Fprintf(e.Stdout, "    %s\n", redact.Visible(n))
	}
}

func newSkillListCommand(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List what steers agents here, and what of it is pinned",
		Args:    cobra.NoArgs,
		Example: "  bawn skill list\n  bawn skill list --json",
		RunE:    func(*cobra.Command, []string) error { return listSkills(e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// A listedSkill is an item, or a pin of one that is not here.
type listedSkill struct {
	State string `json:"state"` // new, changed, pinned, or elsewhere: a pin without its skill here
	skill.Item
	Pinned *skill.Pin `json:"pin,omitempty"`
}

func listSkills(e *launch.Env, asJSON bool) error {
	if _, err := ownSkillPins(e); err != nil {
		return err
	}
	items, err := foundSkills(e)
	if err != nil {
		return err
	}
	pins, err := pinsOf(e)
	if err != nil {
		return err
	}
	list := []listedSkill{}
	for _, i := range items {
		list = append(list, listedSkill{State: pins.State(i).String(), Item: i})
	}
	for _, p := range pins.All() {
		if !slices.ContainsFunc(items, func(i skill.Item) bool { return i.Path == p.Path }) {
			list = append(list, listedSkill{State: "elsewhere", Item: skill.Item{Kind: p.Kind, Name: p.Name, Path: p.Path, Digest: p.Digest}, Pinned: &p})
		}
	}
	if asJSON {
		return verb.WriteJSON(e.Stdout, map[string]any{"items": list})
	}
	if len(list) == 0 {
		nothingSteers(e)
	}
	for _, l := range list {
		note := ""
		if l.Fault != nil {
			note = "  " + l.Fault.Error()
		}
		if _, err := fmt.Fprintf(e.Stdout, "%-10s %-12s %-20s %s%s\n", l.State, l.Kind, redact.Visible(l.Name), redact.Visible(l.Path), note); err != nil {
			return err
		}
	}
	return nil
}

func newSkillPinCommand(e *launch.Env) *cobra.Command {
	var kind string
	var all bool
	c := &cobra.Command{
		Use:     "pin PATH...",
		Short:   "Let sessions use skills exactly as they are now, unasked",
		Long:    "Let sessions use skills and definitions of agents as they are now. What was pinned is known by its digest: any change of a file\nends it, and the next session asks. What \"bawn skill check\" refuses is not pinned.",
		Example: "  bawn skill pin ~/.claude/skills/commit\n  bawn skill pin --all",
		RunE: func(_ *cobra.Command, args []string) error {
			if all != (len(args) == 0) {
				return verb.Usage("name what to pin, or give --all", "want either paths or --all")
			}
			items, err := skillItems(e, kind, args)
			if err != nil {
				return err
			}
			return pinSkills(e, items)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "what PATH is: skill or definition (default: by its name)")
	c.Flags().BoolVar(&all, "all", false, "pin everything that agents find here and that is not refused")
	return c
}

func pinSkills(e *launch.Env, items []skill.Item) error {
	items = slices.DeleteFunc(items, func(i skill.Item) bool { return i.Kind == skill.Instructions })
	reports, err := readItems(e, items)
	if err != nil {
		return err
	}
	file, err := ownSkillPins(e)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	refused := false
	for i := range reports {
		r := &reports[i]
		if printReport(e, r); r.Refused {
			refused = true
			continue
		}
		if r.State == skill.Pinned {
			continue
		}
		if err := skill.Keep(file, "bawn skill pin", time.Now(), r.Item); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: err}
		}
		fmt.Fprintf(e.Stdout, "    pinned as %s\n", r.Digest)
	}
	if refused {
		return verb.Status(verb.ExitDenied)
	}
	return nil
}

func newSkillRmCommand(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME|PATH...",
		Short: "End pins; the files stay",
		Args:  cobra.MinimumNArgs(1),

		ValidArgsFunction: completeSkills(e),
		Example:           "  bawn skill rm commit\n  bawn skill rm ~/.claude/skills/commit",
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := ownSkillPins(e)
			if err != nil {
				return err
			}
			for _, arg := range args {
				removed, err := skill.Remove(file, func(p skill.Pin) bool { return p.Name == arg || p.Path == settings.Absolute(&e.World, arg) })
				switch {
				case errors.Is(err, fs.ErrNotExist), err == nil && len(removed) == 0:
					return verb.Usage("see \"bawn skill list\"", "%q is not pinned", arg)
				case err != nil:
					return &verb.Error{Code: verb.ExitInternal, Err: err}
				}
				for _, p := range removed {
					fmt.Fprintf(e.Stdout, "no longer pinned: %s %s\n", p.Kind, redact.Visible(p.Path))
				}
			}
			return nil
		},
	}
}

// ownSkillPins is skillPins for the human: a guest can't see pins.
func ownSkillPins(e *launch.Env) (string, error) {
	if where := launch.Inside(e); where != "" {
		return "", &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("this is a guest, in %s: what is pinned is not a guest's to see or change", where),
			Hint: "\"bawn skill check PATH\" reads one also here; who works outside of the session pins it"}
	}
	return launch.SkillPins(e)
}
