package hook

import (
	"slices"
	"time"
)

// A dialect is how one agent speaks to its hooks.
type dialect struct {
	Abilities
	name   string
	read   func(object, *Call) error
	events func(event string) Phase
	answer func(c *Call, o Outcome) reply
	// lax says that no exit code denies: the output must.
	lax bool
	// strict says that the agent was not run here: a denial is written in both
	// ways that its documentation knows.
	strict bool
}

// dialects are those of the agents that are known, as the versions in the agents' data
// files were seen to behave.
func dialects() []dialect {
	return []dialect{
		{name: "claude", read: claude, events: claudeEvents, answer: toClaude, Abilities: Abilities{Veto: true, Rewrite: true, Ask: true, Patience: 90 * time.Second}},
		{name: "codex", read: claude, events: claudeEvents, answer: toClaude, Abilities: Abilities{Veto: true, Rewrite: true, Patience: 90 * time.Second}},
		{name: "gemini", read: claude, events: geminiEvents, answer: toGemini, Abilities: Abilities{Veto: true, Rewrite: true, Patience: time.Minute}},
		{name: "qwen", read: claude, events: claudeEvents, answer: toClaude, Abilities: Abilities{Veto: true, Ask: true, Patience: time.Minute}},
		{name: "copilot", read: copilot, events: copilotEvents, answer: toCopilot, Abilities: Abilities{Veto: true, Rewrite: true, Ask: true, Patience: 30 * time.Second}},
		{name: "cline", read: cline, events: clineEvents, answer: toCline, lax: true, Abilities: Abilities{Veto: true, Rewrite: true, Patience: 30 * time.Second}},
		{name: "crush", read: crush, events: claudeEvents, answer: toCrush, strict: true, Abilities: Abilities{Veto: true, Rewrite: true, Patience: 30 * time.Second}},
		{name: "cursor", read: cursor, events: cursorEvents, answer: toCursor, strict: true, Abilities: Abilities{Veto: true, Patience: 30 * time.Second}},
		{name: "opencode", read: plugin, events: pluginEvents, answer: toPlugin, Abilities: Abilities{Veto: true, Rewrite: true, Patience: 10 * time.Minute}},
		{name: "pi", read: plugin, events: pluginEvents, answer: toPlugin, Abilities: Abilities{Veto: true, Rewrite: true, Patience: 10 * time.Minute}},
	}
}

func dialectOf(agent string) *dialect {
	all := dialects()
	if i := slices.IndexFunc(all, func(d dialect) bool { return d.name == agent }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Agents are the names of those that are understood.
func Agents() (names []string) {
	for _, d := range dialects() {
		names = append(names, d.name)
	}
	return names
}

// Supports returns the abilities of the named agent's hooks; empty if the agent
// is unknown.
func Supports(agent string) Abilities {
	if d := dialectOf(agent); d != nil {
		return d.Abilities
	}
	return Abilities{}
}

// phase sorts an event.
func (d *dialect) phase(event string) Phase { return d.events(event) }

func claudeEvents(event string) Phase {
	switch event {
	case "PreToolUse":
		return Before
	case "PermissionRequest":
		return Approve
	case "ConfigChange":
		return Setting
	case "PostToolUse", "PostToolUseFailure", "PermissionDenied", "SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "SubagentStart", "SubagentStop",
		"Notification", "PreCompact", "PostCompact", "Elicitation", "ElicitationResult":
		return Seen
	}
	return Unknown
}

func geminiEvents(event string) Phase {
	switch event {
	case "BeforeTool":
		return Before
	case "AfterTool", "SessionStart", "SessionEnd", "Notification", "BeforeAgent", "AfterAgent", "PreCompress":
		return Seen
	}
	return Unknown
}

func copilotEvents(event string) Phase {
	switch event {
	case "preToolUse":
		return Before
	case "permissionRequest":
		return Approve
	case "postToolUse", "sessionStart", "sessionEnd", "userPromptSubmitted", "errorOccurred":
		return Seen
	}
	return Unknown
}

func clineEvents(event string) Phase {
	switch event {
	case "preToolUse", "PreToolUse":
		return Before
	case "postToolUse", "PostToolUse", "tool_result", "TaskStart", "TaskResume", "TaskCancel", "TaskComplete", "UserPromptSubmit", "agent_start", "agent_end":
		return Seen
	}
	return Unknown
}

func cursorEvents(event string) Phase {
	switch event {
	case "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "preToolUse":
		return Before
	case "afterShellExecution", "afterMCPExecution", "afterFileEdit", "postToolUse", "sessionStart", "sessionEnd", "stop", "subagentStop":
		return Seen
	}
	return Unknown
}

func pluginEvents(event string) Phase {
	switch event {
	case "tool.execute.before", "tool_call": // OpenCode's name, and pi's
		return Before
	case "tool.execute.after", "tool_result":
		return Seen
	}
	return Unknown
}
