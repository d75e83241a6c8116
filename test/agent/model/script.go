package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// A script is what the model does: one step after the other, then the text.
type script struct {
	Commands []step `json:"commands"`
	Text     string `json:"text"`
}

// A step is a command for the agent's shell, which is written as a string, or
// one of: a file to be written, a file to be read, an address to be fetched, a
// call of a tool by its name. What an agent has no tool for, its shell does.
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

// A turn is what the model does next: calls a tool, or says something.
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

// next decides by what has been done so far. A request without tools is the
// agent's own business, such as a title for the conversation.
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

// asCommand is the same for a shell.
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

// names are those that agents give to the tool for it.
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

// arguments fills in what the step says and whatever else the tool requires;
// not ok is a tool that takes no such thing.
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
