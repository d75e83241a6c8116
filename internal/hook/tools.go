package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// A use is the effect of an agent's own tool with its input.
type use uint8

const (
	calls   use = iota // unknown: a call that a rule may name
	runs               // a command line
	reads              // files
	looks              // files below a directory, the working directory where none is named
	writes             // files
	deletes            // files
	fetches            // from a host
	patches            // the files that a patch names
	thinks             // nothing that a policy knows: plans, questions, subagents, whose own tools are judged
)

// useOf returns the effect of a tool. A name means the same for every agent
// that has it. It is a switch since a map would be made at every start of the
// program.
func useOf(tool string) use {
	switch tool {
	case "Bash", "bash", "shell", "Shell", "run_shell_command", "exec_command", "local_shell", "execute_command", "run_commands", "run_terminal_cmd":
		return runs
	case "Read", "read", "read_file", "read_files", "read_many_files", "view", "view_image", "NotebookRead":
		return reads
	case "Glob", "Grep", "LS", "glob", "grep", "ls", "list", "find", "list_directory", "list_dir", "list_files", "grep_search", "search_file_content",
		"search_files", "file_search", "codebase_search", "list_code_definition_names":
		return looks
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "write", "edit", "multiedit", "write_file", "replace", "create", "str_replace", "str_replace_editor",
		"insert", "write_to_file", "replace_in_file", "edit_file", "search_replace":
		return writes
	case "delete_file":
		return deletes
	case "WebFetch", "webfetch", "web_fetch", "fetch", "fetch_web_content":
		return fetches
	case "apply_patch", "ApplyPatch", "patch":
		return patches
	}
	if harmless(tool) {
		return thinks
	}
	return calls
}

// harmless reports whether a tool changes nothing but the agent's own state. A
// web search goes to the model's provider, who has the conversation.
func harmless(tool string) bool {
	switch tool {
	case "TodoWrite", "TodoRead", "Task", "Agent", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskOutput", "TaskStop", "BashOutput", "KillShell",
		"KillBash", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "ToolSearch", "ListMcpResourcesTool", "WebSearch", "Skill", "StructuredOutput", // Claude
		"update_plan", "web_search", "request_user_input", // Codex
		"write_todos", "todo_write", "google_web_search", "ask_user", "ask_user_question", "enter_plan_mode", "exit_plan_mode", "activate_skill",
		"codebase_investigator", "get_internal_docs", "complete_task", "task", "skill", // Gemini, Qwen
		"report_intent", "update_todo", "read_bash", "stop_bash", "list_bash", // Copilot
		"ask_followup_question", "ask_question", "attempt_completion", "plan_mode_respond", "new_task", "submit_and_exit", // Cline
		"todowrite", "todoread", "question", "plan_exit": // OpenCode
		return true
	}
	return false
}

// joins reports whether an agent calls the tools of servers SERVER_TOOL: to it
// "plan_exit" may be one of a server "plan".
func joins(agent string) bool { return agent == "opencode" || agent == "pi" }

// An input holds a tool's arguments.
type input struct {
	object
	command string // the member that holds the one command line
	listed  bool   // it is a list with that one element
	asText  bool   // the whole input was written as a string
}

// Members that name a tool's object, in one agent or another.
var (
	commandMembers = []string{"command", "cmd", "commands"}
	pathMembers    = []string{"file_path", "filePath", "path", "absolute_path", "notebook_path", "dir_path", "directory", "target_file", "paths", "files", "file_paths"}
	dirMembers     = []string{"workdir", "dir_path", "directory", "cwd", "working_directory"}
	patchMembers   = []string{"input", "patch", "patchText", "patch_text", "command"}
)

// actions fills in the actions that the tool is about to take.
func (c *Call) actions() error {
	base, u := bawn.Action{Session: c.Session, Agent: c.Agent, Dir: c.Cwd}, useOf(c.Tool)
	if u == thinks && joins(c.Agent) && strings.Contains(c.Tool, "_") {
		u = calls
	}
	known := readMembers()
	if u == calls || u == thinks {
		known = nil
	}
	if err := c.input.distinct(known); err != nil {
		return err
	}
	switch u {
	case thinks:
		return nil
	case runs:
		return c.commands(base)
	case reads, looks, writes, deletes:
		return c.files(base, u)
	case fetches:
		return c.hosts(base)
	case patches:
		return c.patch(base)
	}
	return c.call(base)
}

// call is one of a tool that nothing is known of.
func (c *Call) call(a bawn.Action) error {
	a.Kind, a.Operation, a.Resource = bawn.Tool, bawn.Call, c.Agent+"/"+c.Tool
	rest, is := strings.CutPrefix(c.Tool, ofServers)
	if !is {
		c.Actions = []bawn.Action{a}
		return nil
	}
	if resource, ok := AtGateway(c.Tool); ok {
		a.Resource, c.Later = resource, true
		c.Actions = []bawn.Action{a}
		return c.named(rest)
	}
	if isOwn(rest) {
		return c.named(rest)
	}
	return c.readings(a, rest)
}

// commands are the command lines that a tool hands to a shell.
func (c *Call) commands(a bawn.Action) error {
	a.Kind, a.Operation = bawn.Command, bawn.Exec
	var err error
	if a.Dir, err = c.directory(); err != nil {
		return err
	}
	found := ""
	for _, m := range commandMembers {
		switch {
		case !c.input.has(m):
			continue
		case found != "":
			return fmt.Errorf("both %s and %s say what to run; want one", found, m)
		}
		found = m
	}
	if found == "" {
		return errors.New("it says no command")
	}
	return c.lines(a, found)
}

// lines reads the member that holds the command: a text, a list of texts, or
// what only "command" and "cmd" may be, an argv.
func (c *Call) lines(a bawn.Action, member string) (err error) {
	listed := c.input.object[member][0] == '['
	list := []string{""}
	if listed {
		list, err = c.input.list(member)
	} else {
		list[0], err = c.input.text(member)
	}
	switch {
	case err != nil:
		return err
	case listed && member != "commands":
		return c.argv(a, list)
	}
	for _, text := range list {
		if strings.TrimSpace(text) == "" {
			return errors.New("a command is empty")
		}
		a.Resource = text
		c.Actions = append(c.Actions, a)
	}
	if len(list) == 1 {
		c.Command, c.input.command, c.input.listed = list[0], member, listed
	}
	return nil
}

// argv is a command without a shell. It can't be replaced by a text.
func (c *Call) argv(a bawn.Action, words []string) error {
	if len(words) == 0 || words[0] == "" {
		return errors.New("a command is empty")
	}
	a.Args, a.Resource = words, strings.Join(words, " ")
	c.Actions = append(c.Actions, a)
	return nil
}

// directory is where a tool's command runs: if several members name it, they
// must agree.
func (c *Call) directory() (string, error) {
	dir := c.Cwd
	for _, m := range dirMembers {
		d, err := c.input.text(m)
		switch {
		case err != nil:
			return "", err
		case d == "":
			continue
		}
		if d, err = join(c.Cwd, d); err != nil {
			return "", fmt.Errorf("%s: %w", m, err)
		}
		if dir != c.Cwd && dir != d {
			return "", fmt.Errorf("it names two directories to run in, %q and %q", dir, d)
		}
		dir = d
	}
	return dir, nil
}

// files are those that a tool of the agent's own process reads or writes.
func (c *Call) files(a bawn.Action, u use) error {
	a.Kind, a.Operation = bawn.Filesystem, bawn.Read
	switch u {
	case writes:
		a.Operation = bawn.Write
	case deletes:
		a.Operation = bawn.Delete
	}
	for _, m := range pathMembers {
		paths, err := c.paths(m)
		if err != nil {
			return err
		}
		for _, p := range paths {
			a.Resource = p
			c.Actions = append(c.Actions, a)
		}
	}
	if len(c.Actions) == 0 && u == looks {
		a.Resource = c.Cwd
		c.Actions = []bawn.Action{a}
	}
	if u == looks || u == reads {
		if err := c.matched(a, u); err != nil {
			return err
		}
	}
	if len(c.Actions) == 0 {
		return errors.New("it names no file")
	}
	return nil
}

// paths are the values of one member: a string, or a list of strings or of objects
// that have a path.
func (c *Call) paths(member string) ([]string, error) {
	switch {
	case !c.input.has(member):
		return nil, nil
	case c.input.object[member][0] != '[':
		p, err := c.input.text(member)
		return []string{p}, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(c.input.object[member], &all); err != nil {
		return nil, err
	}
	var out []string
	for _, raw := range all {
		if raw[0] == '{' {
			var in object
			if err := json.Unmarshal(raw, &in); err != nil || !in.has("path") {
				return nil, fmt.Errorf("%s: a file has no path", member)
			}
			raw = in["path"]
		}
		p, err := textOf(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// hosts are those of the URLs that a tool fetches. Where there are only words,
// they are used.
func (c *Call) hosts(a bawn.Action) error {
	a.Kind, a.Operation = bawn.Network, bawn.Connect
	urls, err := c.urls()
	if err != nil {
		return err
	}
	for _, u := range urls {
		host, _, port, err := hostname.SplitASCII(u)
		if err != nil {
			return err
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		a.Resource = host + ":" + cmp.Or(port, "443")
		c.Actions = append(c.Actions, a)
	}
	return nil
}

func (c *Call) urls() (urls []string, err error) {
	for _, m := range []string{"url", "urls"} {
		list, err := c.paths(m)
		if err != nil {
			return nil, err
		}
		urls = append(urls, list...)
	}
	if len(urls) > 0 {
		return urls, nil
	}
	text, err := c.input.text("prompt")
	if urls = within(text); err == nil && len(urls) == 0 {
		err = errors.New("it names no address")
	}
	return urls, err
}

// within are the addresses that stand in a text.
func within(text string) (out []string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`<>()[]{},;", r) }) {
		if i := strings.Index(strings.ToLower(word), "http"); i >= 0 && strings.Contains(word[i:], "://") {
			out = append(out, word[i:])
		}
	}
	return out
}

// The words before a name in a patch of Codex.
var patchMarks = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// patch names the files that a patch changes.
func (c *Call) patch(a bawn.Action) error {
	a.Kind, a.Operation = bawn.Filesystem, bawn.Write
	for _, m := range patchMembers {
		if !c.input.has(m) || c.input.object[m][0] == '[' {
			continue
		}
		text, err := c.input.text(m)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			for _, mark := range patchMarks {
				if name, is := strings.CutPrefix(strings.TrimSpace(line), mark); is {
					a.Resource = strings.TrimSpace(name)
					c.Actions = append(c.Actions, a)
				}
			}
		}
	}
	if len(c.Actions) == 0 {
		return errors.New("the patch names no file")
	}
	return nil
}
