package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/skill"
	"github.com/bawn-dev/bawn/internal/verb"
)

// skillPatience is how long it may take to read all that is not pinned.
const skillPatience = time.Minute

// SkillPins is the file of pins.
func SkillPins(e *Env) (string, error) {
	dir, err := settings.StateDir(&e.World)
	return filepath.Join(dir, "skills.json"), err
}

// SkillPlaces are where agents look for texts that steer them: the human's own
// places, and those of each project directory.
func SkillPlaces(e *Env, list []*agents.Agent, projects ...string) []skill.Place {
	var places []skill.Place
	for _, a := range list {
		for _, p := range projects {
			w := agents.World{Home: filepath.Clean(e.Getenv("HOME")), Project: p, Getenv: e.Getenv}
			for kind, files := range map[skill.Kind][]string{skill.Skill: a.Files.Skills, skill.Definition: a.Files.Definitions, skill.Instructions: a.Files.Instructions} {
				for _, path := range a.ExpandAll(files, w) {
					places = append(places, skill.Place{Kind: kind, Path: path})
				}
			}
		}
	}
	slices.SortFunc(places, func(a, b skill.Place) int {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		return cmpPath(a.Path, b.Path)
	})
	return slices.Compact(places)
}

func cmpPath(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Examine has items read by the strict rules. It asks bawnd where this program
// does not hold them; an item that was not read as it was found is refused.
func Examine(ctx context.Context, e *Env, items []skill.Item) ([]skill.Report, error) {
	var reports []skill.Report
	if e.CheckSkill != nil {
		for _, i := range items {
			reports = append(reports, e.CheckSkill(i.Kind, i.Path))
		}
		return reports, nil
	}
	for _, k := range []skill.Kind{skill.Skill, skill.Definition, skill.Instructions} {
		var paths []string
		for _, i := range items {
			if i.Kind == k {
				paths = append(paths, i.Path)
			}
		}
		for part := range slices.Chunk(paths, 100) {
			read, err := askReader(ctx, e, k, part)
			if err != nil {
				return nil, err
			}
			reports = append(reports, read...)
		}
	}
	return reports, nil
}

// askReader has bawnd read items of one kind.
func askReader(ctx context.Context, e *Env, k skill.Kind, paths []string) ([]skill.Report, error) {
	program, err := remote.Find()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, skillPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"skill", "check", "--json", "--kind", k.String(), "--"}, paths...)...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = e.Environ, e.Dir, &out, &said
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != verb.ExitDenied { // which says that some are refused
		return nil, fmt.Errorf("read what is not pinned: %w: %.500s", err, said.String())
	}
	var answer SkillReports
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("read what is not pinned: %w", err)
	}
	if len(answer.Items) != len(paths) {
		return nil, errors.New("read what is not pinned: some of it was not read")
	}
	reports := make([]skill.Report, len(answer.Items))
	for i, r := range answer.Items {
		reports[i] = r.Report
	}
	return reports, nil
}

// SkillReports is what bawn skill check --json prints.
type SkillReports struct {
	Items []SkillReport `json:"items"`
}

type SkillReport struct {
	skill.Report
	State   skill.State `json:"state"`
	Refused bool        `json:"refused"`
}
