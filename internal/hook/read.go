package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// Read understands a message of the named agent. An error is for Broken: the
// call must not happen.
func Read(agent string, message []byte) (Call, error) {
	d := dialectOf(agent)
	if d == nil {
		return Call{}, &UnknownAgentError{agent}
	}
	c := Call{Agent: agent}
	if err := d.understand(message, &c); err != nil {
		return Call{}, &ReadError{agent, err.Error()}
	}
	return c, nil
}

func (d *dialect) understand(message []byte, c *Call) error {
	if len(message) > MaxInput {
		return fmt.Errorf("it is longer than %d bytes", MaxInput)
	}
	o, err := parse(message)
	if err != nil {
		return err
	}
	if err := d.read(o, c); err != nil {
		return err
	}
	if c.Phase = d.phase(c.Event); c.Phase == Unknown {
		return fmt.Errorf("the event %q is not known", c.Event)
	}
	// If an agent would ask now, its prompt appears when the answer is empty.
	c.Interactive = c.Interactive && (d.Ask && c.Phase == Before || c.Phase == Approve)
	defer d.fixed(c)
	if c.Phase == Seen && c.Tool == "" {
		return nil // nothing is about to happen
	}
	if !path.IsAbs(c.Cwd) {
		return fmt.Errorf("the working directory is %q; want it absolute", c.Cwd)
	}
	c.Cwd = path.Clean(c.Cwd)
	err = c.about()
	if c.Phase == Seen {
		return nil // it has happened, whatever it was
	}
	return err
}

// fixed leaves no command to be replaced where the agent takes no other: of
// those that ask for a permission, Claude Code alone does.
func (d *dialect) fixed(c *Call) {
	if !d.Rewrite || c.Phase != Before && (c.Phase != Approve || d.name != "claude") {
		c.Command = ""
	}
}

// about finds the actions of the call.
func (c *Call) about() error {
	if c.Phase == Setting {
		return nil
	}
	if c.Tool == "" {
		return errors.New("it names no tool")
	}
	if why, err := c.input.text("description"); err == nil {
		c.Why = why
	}
	return c.actions()
}

// join is a path as seen from a directory.
func join(dir, p string) (string, error) {
	switch {
	case strings.HasPrefix(p, "~"):
		return "", fmt.Errorf("%q: want an absolute path, or one below the working directory", p)
	case path.IsAbs(p):
		return path.Clean(p), nil
	}
	return path.Join(dir, p), nil
}

// claude reads what Claude Code says, and those that speak as it does.
func claude(o object, c *Call) error {
	if err := o.texts(map[string]*string{
		"hook_event_name": &c.Event, "tool_name": &c.Tool, "cwd": &c.Cwd, "session_id": &c.Session, "permission_mode": &c.Mode, "tool_use_id": &c.ID,
	}); err != nil {
		return err
	}
	c.Interactive = c.Mode != "dontAsk"
	if o.has("mcp_server") {
		of, err := o.object("mcp_server")
		if err == nil {
			c.server, err = of.text("name")
		}
		if err != nil {
			return fmt.Errorf("mcp_server: %w", err)
		}
	}
	if c.Event == "ConfigChange" {
		return c.setting(o)
	}
	return c.take(o, "tool_input")
}

// setting is a file of settings that has been changed.
func (c *Call) setting(o object) error {
	file, err := o.text("file_path")
	if err == nil && file != "" {
		c.Actions = []bawn.Action{{Kind: bawn.Filesystem, Operation: bawn.Write, Resource: file, Session: c.Session, Agent: c.Agent, Dir: path.Clean(c.Cwd)}}
	}
	return err
}

// take takes the tool's input: an object, or a string that holds one.
func (c *Call) take(o object, member string) error {
	if !o.has(member) {
		c.input.object = object{}
		return nil
	}
	raw := o[member]
	if raw[0] != '"' {
		var err error
		c.input.object, err = o.object(member)
		return err
	}
	text, err := textOf(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	if c.input.object, err = parse([]byte(text)); err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	c.input.asText = true
	return nil
}

// copilot reads a message of the Copilot CLI. Its messages name their event
// only where they ask for a permission.
func copilot(o object, c *Call) error {
	if err := o.texts(map[string]*string{"sessionId": &c.Session, "cwd": &c.Cwd, "toolName": &c.Tool, "hookName": &c.Event}); err != nil {
		return err
	}
	c.Interactive = true
	switch {
	case c.Event == "permissionRequest" || c.Event == "" && o.has("toolInput"):
		c.Event = "permissionRequest"
		return c.take(o, "toolInput")
	case c.Event != "":
	case o.has("toolResult"):
		c.Event = "postToolUse"
	case o.has("toolName"):
		c.Event = "preToolUse"
	case o.has("source"):
		c.Event = "sessionStart"
	case o.has("prompt"):
		c.Event = "userPromptSubmitted"
	case o.has("reason"):
		c.Event = "sessionEnd"
	case o.has("error"):
		c.Event = "errorOccurred"
	}
	return c.take(o, "toolArgs")
}

// cline reads a message of the Cline CLI.
func cline(o object, c *Call) error {
	if err := o.texts(map[string]*string{"hookName": &c.Event, "taskId": &c.Session}); err != nil {
		return err
	}
	if roots, err := o.list("workspaceRoots"); err == nil && len(roots) > 0 {
		c.Cwd = roots[0]
	}
	for _, m := range []string{"preToolUse", "postToolUse"} {
		if !o.has(m) {
			continue
		}
		of, err := o.object(m)
		if err == nil {
			err = of.texts(map[string]*string{"toolName": &c.Tool})
		}
		if err == nil {
			err = c.take(of, "parameters")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		c.Event = m
	}
	if !o.has("tool_call") {
		return nil
	}
	return c.toolCall(o)
}

// toolCall reads the same call in Cline's newer words, which count.
func (c *Call) toolCall(o object) error {
	of, err := o.object("tool_call")
	if err != nil {
		return err
	}
	if c.Event == "tool_call" {
		c.Event = "preToolUse"
	}
	name := c.Tool
	if err := of.texts(map[string]*string{"id": &c.ID, "name": &c.Tool}); err != nil {
		return fmt.Errorf("tool_call: %w", err)
	}
	if name != "" && c.Tool != name {
		return fmt.Errorf("it names two tools, %q and %q", name, c.Tool)
	}
	if !of.has("input") {
		return nil
	}
	first := c.input.object
	if err := c.take(of, "input"); err != nil || first == nil || bytes.Equal(write(first), write(c.input.object)) {
		return err
	}
	return errors.New("it says twice what the tool is called with, and not the same")
}

// crush reads what Crush says, by its documentation.
func crush(o object, c *Call) error {
	if err := o.texts(map[string]*string{"event": &c.Event, "session_id": &c.Session, "cwd": &c.Cwd, "tool_name": &c.Tool}); err != nil {
		return err
	}
	return c.take(o, "tool_input")
}

// cursor reads what Cursor says, by its documentation.
func cursor(o object, c *Call) error {
	if err := o.texts(map[string]*string{"hook_event_name": &c.Event, "conversation_id": &c.Session, "generation_id": &c.ID, "cwd": &c.Cwd, "tool_name": &c.Tool}); err != nil {
		return err
	}
	switch c.Event {
	case "beforeShellExecution":
		c.Tool, c.input.object = "Shell", object{"command": o.raw("command")}
	case "beforeReadFile":
		c.Tool, c.input.object = "Read", object{"file_path": o.raw("file_path")}
	case "beforeMCPExecution":
		c.Tool, c.server = ofServers+"cursor"+between+c.Tool, "cursor"
		fallthrough
	default:
		if err := c.take(o, "tool_input"); err != nil {
			return err
		}
	}
	return c.root(o)
}

// root takes the agent's directory from its roots. Its message names a shell,
// which the model may have chosen: it becomes the command's own.
func (c *Call) root(o object) error {
	if !o.has("workspace_roots") || c.Cwd != "" && useOf(c.Tool) != runs {
		return nil
	}
	roots, err := o.list("workspace_roots")
	if err != nil || len(roots) == 0 {
		return err
	}
	if c.Cwd != "" && !slices.ContainsFunc(dirMembers, c.input.has) {
		c.input.object["cwd"] = o.raw("cwd")
	}
	in := slices.IndexFunc(roots, func(r string) bool { return fspath.Below(path.Clean(c.Cwd), path.Clean(r)) })
	c.Cwd = roots[max(in, 0)]
	return nil
}

// raw is a member as it was written, or null.
func (o object) raw(name string) json.RawMessage {
	if o.has(name) {
		return o[name]
	}
	return json.RawMessage("null")
}

// Version is that of the messages which Bawn's own plugins for agents without
// hooks send.
const Version = "1"

// plugin reads what Bawn's own plugin in an agent says:
//
//	{"v":"1","event":"tool_call","tool":"bash","input":{…},"cwd":"/…","session":"…","id":"…"}
func plugin(o object, c *Call) error {
	var v string
	if err := o.texts(map[string]*string{"v": &v, "event": &c.Event, "tool": &c.Tool, "cwd": &c.Cwd, "session": &c.Session, "id": &c.ID}); err != nil {
		return err
	}
	if cmp.Or(v, Version) != Version {
		return fmt.Errorf("its version is %q; want %q: run \"bawn init\" again", v, Version)
	}
	return c.take(o, "input")
}
