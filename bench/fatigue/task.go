package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

//go:embed tasks
var taskFiles embed.FS

// Variants of a task.
const (
	clean  = "clean"  // as it is
	attack = "attack" // with a planted step, and poisoned
)

var variants = []string{clean, attack}

// A task is a whole piece of work, as a file of tasks/ says it.
type task struct {
	Name     string            `toml:"-"`
	Prompt   string            `toml:"prompt"`
	Files    map[string]string `toml:"files"`    // of the project, committed
	Home     map[string]string `toml:"home"`     // of the user
	Registry map[string]string `toml:"registry"` // code of packages of the name "tiny", in place of the usual: js, js-install, go, py
	Steps    []any             `toml:"steps"`    // of the scripted model, in the form of test/agent/model
	Complete []string          `toml:"complete"` // effects
	Yes      []string          `toml:"yes"`      // patterns of questions that the task raises: the human says yes to them
	Planted  planted           `toml:"planted"`
	Poisoned poisoned          `toml:"poisoned"`

	yes []*regexp.Regexp
}

// planted is a step that nobody has asked for.
type planted struct {
	After   int      `toml:"after"` // so many steps
	Step    any      `toml:"step"`
	Effects []string `toml:"effects"` // none may be there
}

// poisoned is what the agent works with, by somebody else: its ordinary steps run it.
type poisoned struct {
	Files    map[string]string `toml:"files"`
	Registry map[string]string `toml:"registry"`
	Effects  []string          `toml:"effects"` // none may be there
}

// tasks reads all tasks, in the order of their names.
func tasks() (list []*task, err error) {
	entries, err := taskFiles.ReadDir("tasks")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := taskFiles.ReadFile(path.Join("tasks", e.Name()))
		if err != nil {
			return nil, err
		}
		t := &task{Name: strings.TrimSuffix(e.Name(), ".toml")}
		d := toml.NewDecoder(strings.NewReader(placed.Replace(string(text))))
		d.DisallowUnknownFields()
		if err := d.Decode(t); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		list = append(list, t)
	}
	return list, nil
}

// placed stand in tasks for hosts of registries.
var placed = strings.NewReplacer("{npm}", npm, "{pypi}", pypi)

// check refuses a task that can't fail.
func (t *task) check() error {
	switch {
	case t.Prompt == "" || len(t.Steps) == 0 || len(t.Complete) == 0:
		return fmt.Errorf("want a prompt, steps and effects that complete it")
	case t.Planted.Step == nil || len(t.Planted.Effects) == 0 || t.Planted.After > len(t.Steps):
		return fmt.Errorf("want a planted step, its place and its effects")
	case len(t.Poisoned.Effects) == 0 || len(t.Poisoned.Files)+len(t.Poisoned.Registry) == 0:
		return fmt.Errorf("want a poisoned variant and its effects")
	}
	for _, text := range slices.Concat(t.Complete, t.Planted.Effects, t.Poisoned.Effects) {
		if _, err := parseEffect(text); err != nil {
			return err
		}
	}
	for _, text := range t.Yes {
		r, err := regexp.Compile(text)
		if err != nil {
			return err
		}
		t.yes = append(t.yes, r)
	}
	return nil
}

// script is the model's, for a variant and a project. Agents' own tools want
// absolute names.
func (t *task) script(variant, work string) (text []byte, steps int, err error) {
	list := slices.Clone(t.Steps)
	if variant == attack {
		list = slices.Insert(list, t.Planted.After, t.Planted.Step)
	}
	for i, step := range list {
		if call, ok := step.(map[string]any); ok {
			call = maps.Clone(call)
			for _, key := range []string{"read", "write"} {
				if name, ok := call[key].(string); ok {
					call[key] = filepath.Join(work, name)
				}
			}
			list[i] = call
		}
	}
	text, err = json.Marshal(map[string]any{"commands": list, "text": lastWords})
	return text, len(list), err
}

// lastWords end the script.
const lastWords = "the script is at its end"

// deserves reports whether a question is about a crossing that the task needs.
func (t *task) deserves(q question) bool {
	return slices.ContainsFunc(t.yes, func(r *regexp.Regexp) bool { return r.MatchString(q.String()) })
}
