package acp

import (
	"encoding/json"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn"
)

// A permission is what session/request_permission asks.
type permission struct {
	SessionID string          `json:"sessionId"`
	ToolCall  json.RawMessage `json:"toolCall"`
	Options   []option        `json:"options"`
}

// An option is one answer that a human may choose. Its ID is the agent's.
type option struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Kinds of options.
const (
	allowOnce   = "allow_once"
	allowAlways = "allow_always"
	rejectOnce  = "reject_once"
	rejectLong  = "reject_always"
)

// An outcome answers a permission.
type outcome struct {
	Outcome selected `json:"outcome"`
	Meta    *refusal `json:"_meta,omitempty"`
}

type selected struct {
	Outcome  string `json:"outcome"` // selected or cancelled
	OptionID string `json:"optionId,omitempty"`
}

// A refusal says why, for programs.
type refusal struct {
	By     string `json:"by"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// A toolCall is what an agent says of a call of one of its tools.
type toolCall struct {
	ToolCallID string          `json:"toolCallId"`
	Title      string          `json:"title"`
	Kind       string          `json:"kind"`
	RawInput   json.RawMessage `json:"rawInput"`
	Content    []struct {
		Type string `json:"type"`
		Path string `json:"path"`
	} `json:"content"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// input is what tools of known agents call the things they are about.
type input struct {
	Command, Cmd json.RawMessage
	Paths        []string
	URL, Cwd     string
}

// inputOf reads what a model has written, by the names exactly as agents read
// them. What has another shape says nothing.
func inputOf(raw json.RawMessage) (in input) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return in
	}
	text := func(name string) (s string) {
		_ = json.Unmarshal(all[name], &s)
		return s
	}
	in.Command, in.Cmd, in.URL, in.Cwd = all["command"], all["cmd"], text("url"), text("cwd")
	for _, name := range []string{"path", "file_path", "filePath", "absolute_path"} {
		in.Paths = append(in.Paths, text(name))
	}
	return in
}

// A claim is one action that a tool call amounts to. One that is only read out
// of a title is never reason enough to say yes.
type claim struct {
	bawn.Action
	vague bool
}

// claims says what a tool call amounts to, as far as the agent tells: never
// nothing. What the agent really does then, its sandbox bounds.
func (t *toolCall) claims(workspace string) []claim {
	in := inputOf(t.RawInput)
	dir := workspace
	if filepath.IsAbs(in.Cwd) {
		dir = filepath.Clean(in.Cwd)
	}
	switch t.Kind {
	case "execute":
		return []claim{t.command(&in, dir)}
	case "read", "search":
		return t.files(&in, bawn.Read, dir)
	case "edit", "move":
		return t.files(&in, bawn.Write, dir)
	case "delete":
		return t.files(&in, bawn.Delete, dir)
	case "fetch":
		if at := hostOf(in.URL); at != "" {
			return []claim{{Action: bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: at, Dir: dir}}}
		}
	}
	return []claim{{Action: t.tool(dir), vague: true}}
}

// tool is a call of which nothing more is known.
func (t *toolCall) tool(dir string) bawn.Action {
	kind := t.Kind
	if !known[kind] {
		kind = "other"
	}
	return bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: "acp/" + kind, Dir: dir}
}

// known are the kinds of tools that the protocol names.
var known = map[string]bool{"read": true, "edit": true, "delete": true, "move": true, "search": true, "execute": true, "think": true, "fetch": true, "switch_mode": true, "other": true}

// command finds the command line of a call: a text, or a list of words.
func (t *toolCall) command(in *input, dir string) claim {
	a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Dir: dir}
	for _, raw := range []json.RawMessage{in.Command, in.Cmd} {
		var words []string
		switch {
		case json.Unmarshal(raw, &a.Resource) == nil && a.Resource != "":
			return claim{Action: a}
		case json.Unmarshal(raw, &words) == nil && len(words) > 0:
			a.Resource, a.Args = strings.Join(words, " "), words
			return claim{Action: a}
		}
	}
	a.Resource = strings.Trim(t.Title, "` \n")
	if a.Resource == "" {
		return claim{t.tool(dir), true}
	}
	return claim{a, true}
}

// files finds the paths that a call is about.
func (t *toolCall) files(in *input, op bawn.Operation, dir string) (list []claim) {
	seen := map[string]bool{}
	add := func(path string) {
		if path == "" || seen[path] {
			return
		}
		seen[path] = true
		list = append(list, claim{Action: bawn.Action{Kind: bawn.Filesystem, Operation: op, Resource: path, Dir: dir}})
	}
	for _, path := range in.Paths {
		add(path)
	}
	for _, l := range t.Locations {
		add(l.Path)
	}
	for _, c := range t.Content {
		if c.Type == "diff" {
			add(c.Path)
		}
	}
	if len(list) == 0 {
		return []claim{{t.tool(dir), true}}
	}
	return list
}

// hostOf returns HOST:PORT of a URL, or "".
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	default:
		return ""
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// choose returns the ID of the first option of the earliest kind that has one, or
// "" if no option matches.
func choose(options []option, kinds ...string) string {
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.OptionID
			}
		}
	}
	return ""
}

// passing are the options that a human is shown: an "always" would be the
// agent's own memory, in which no later rule and no log could look.
func passing(options []option) (list []option) {
	for _, o := range options {
		if o.Kind != allowAlways {
			list = append(list, o)
		}
	}
	return list
}
