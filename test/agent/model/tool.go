package main

import (
	"slices"
	"strings"
)

// A tool is what the agent offers.
type tool struct {
	Name   string
	Schema schema
}

// schema is what is used of a tool's JSON Schema.
type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type any   `json:"type"` // a name, in capitals with Gemini, or a list of names
	Enum []any `json:"enum"`
}

// shells are the names that agents give to it.
var shells = []string{"run_shell_command", "shell", "bash", "Bash", "execute_command"}

func (t tool) isShell() bool {
	_, takes := t.Schema.Properties["command"]
	return takes && slices.Contains(shells, t.Name)
}

// arguments fills in the command and whatever else is required.
func (t tool) arguments(command string) map[string]any {
	args := map[string]any{"command": command}
	for _, name := range t.Schema.Required {
		if name != "command" {
			args[name] = t.Schema.Properties[name].any()
		}
	}
	return args
}

// any returns some value that the property takes.
func (p property) any() any {
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	name, _ := p.Type.(string)
	switch strings.ToLower(name) {
	case "boolean":
		return false
	case "number", "integer":
		return 1
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "scripted"
}
