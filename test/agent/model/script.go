package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// A script is a list of steps, which the model calls one after the other, and the text
// that ends the turn.
type script struct {
	Commands []step `json:"commands"`
	Text     string `json:"text"`
}

// A step is one of: a command for the agent's shell, written as a string; a file to write;
// a file to read; an address to fetch; a call of a tool by its name. If the agent has no
// tool for a step, its shell does it.
type step struct {
	Command string         `json:"-"`
	Write   string         `json:"write"` // path
	Text    string         `json:"text"`  // of what is written
	Read    string         `json:"read"`  // path
	Fetch   string         `json:"fetch"` // URL
	Tool    string         `json:"tool"`
	Args    map[string]any `json:"args"`
}

// UnmarshalJSON takes a string or an object.
func (s *step) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &s.Command)
	}
	type plain step
	return json.Unmarshal(text, (*plain)(s))
}

// A turn is the model's next answer: a call of a tool, or a text.
type turn struct {
	tool tool
	args map[string]any
	text string
}

// calls reports whether the turn is a call.
func (t turn) calls() bool { return t.tool.Name != "" }

// input is the call's arguments as a text.
func (t turn) input() string {
	text, _ := json.Marshal(t.args) // strings, numbers and the like
	return string(text)
}

// next returns the turn after the first done steps. A request without tools is not about
// the task, for example a request for the conversation's title.
func (s *script) next(done int, tools []tool) turn {
	switch {
	case len(tools) == 0:
		return turn{text: "ok"}
	case done >= len(s.Commands):
		return turn{text: s.Text}
	}
	do := s.Commands[done]
	for _, want := range []step{do, do.asCommand()} {
		for _, name := range want.names() {
			for _, t := range tools {
				if args, ok := want.arguments(t); ok && t.is(name) {
					return turn{tool: t, args: args}
				}
			}
		}
	}
	return turn{text: "you offer no " + cmp.Or(do.Tool, "shell")}
}

// asCommand returns the step as a shell command.
func (s step) asCommand() step {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	switch {
	case s.Write != "":
		return step{Command: fmt.Sprintf("printf %%s %s > %s", quote(s.Text), quote(s.Write))}
	case s.Read != "":
		return step{Command: "cat " + quote(s.Read)}
	case s.Fetch != "":
		return step{Command: "curl -sS -m 10 " + quote(s.Fetch)}
	}
	return s
}

// names returns the names that agents give to the tool for the step.
func (s step) names() []string {
	switch {
	case s.Tool != "":
		return []string{s.Tool}
	case s.Write != "":
		return []string{"Write", "write", "write_file", "write_to_file", "create"}
	case s.Read != "":
		return []string{"Read", "read", "read_file", "view"}
	case s.Fetch != "":
		return []string{"WebFetch", "webfetch", "web_fetch", "fetch"}
	}
	return []string{"Bash", "bash", "exec_command", "run_shell_command", "shell", "execute_command"}
}

// arguments returns the arguments of a call of t: those of the step, and any value for
// others that the tool requires. ok is false if the tool can't do the step.
func (s step) arguments(t tool) (args map[string]any, ok bool) {
	args, ok = map[string]any{}, true
	put := func(value string, names ...string) {
		name := t.takes(names)
		if args[name] = value; name == "" {
			ok = false
		}
	}
	switch {
	case s.Tool != "":
		return s.Args, true
	case s.Write != "":
		put(s.Write, "file_path", "filePath", "path", "absolute_path")
		put(s.Text, "content", "contents", "file_text", "text")
	case s.Read != "":
		put(s.Read, "file_path", "filePath", "path", "absolute_path")
	case s.Fetch != "":
		put(s.Fetch, "url")
	default:
		put(s.Command, "command", "cmd")
	}
	for _, name := range t.Schema.Required {
		if _, there := args[name]; !there {
			args[name] = t.Schema.Properties[name].any()
		}
	}
	return args, ok
}
