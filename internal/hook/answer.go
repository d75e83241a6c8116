package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"github.com/bawn-dev/bawn"
)

// denyCode is the exit code that nearly every agent takes for a denial,
// whatever was written.
const denyCode = 2

// A reply is written as JSON; nil is nothing.
type reply map[string]any

// Answer is the agent's answer. Outcomes that can't be expressed to it are
// denials: an Ask without a prompt of its own, or a command of another text
// where it takes none. It says nothing where a call does nothing that is
// decided here.
func Answer(c Call, o Outcome) Output {
	d := dialectOf(c.Agent)
	if d == nil {
		return Broken(c.Agent, &UnknownAgentError{c.Agent})
	}
	if c.Phase == Seen {
		return Output{Stdout: d.nothing()}
	}
	if why := d.unsayable(&c, o); why != nil {
		o = Outcome{Reason: why.Error()}
	}
	if o.Verdict == bawn.Allow && (len(c.Actions) == 0 || c.Later) || o.Verdict == bawn.Ask && c.Phase == Approve {
		return Output{Stdout: d.nothing()}
	}
	out := Output{Stdout: write(d.answer(&c, o))}
	if d.strict && o.Verdict == bawn.Deny {
		out.Code, out.Stderr = denyCode, []byte(o.Reason+"\n")
	}
	return out
}

// unsayable says why an outcome can't be told to the agent as it is.
func (d *dialect) unsayable(c *Call, o Outcome) error {
	switch {
	case c.Phase == Unknown || o.Verdict > bawn.Allow:
		return errors.New("bawn: nothing was decided")
	case o.Verdict == bawn.Ask && !c.Interactive:
		return errors.New("bawn: nobody could be asked: " + o.Reason)
	case o.Rewritten != "" && c.Command == "":
		return errors.New("bawn: the command can't be moved into a sandbox: " + o.Reason)
	}
	return nil
}

// nothing is what lets the agent's own rules go on.
func (d *dialect) nothing() []byte {
	if d.name == "cline" || d.name == "opencode" || d.name == "pi" {
		return write(d.answer(&Call{Phase: Before}, Outcome{Verdict: bawn.Allow}))
	}
	return nil
}

// Broken is the answer to what could not be read or decided: a no, in every way
// that the agent understands.
func Broken(agent string, why error) Output {
	out := Output{Stderr: []byte("bawn: denied: " + why.Error() + "\n"), Code: denyCode}
	d := dialectOf(agent)
	if d == nil {
		return out
	}
	c := Call{Agent: agent, Phase: Before, Event: "PreToolUse"}
	out.Stdout = write(d.answer(&c, Outcome{Reason: "bawn: " + why.Error()}))
	if d.lax {
		out.Code = 0
	}
	return out
}

// rewritten is the tool's input with another command, as the agent wrote it.
func (c *Call) rewritten(text string) any {
	in := maps.Clone(c.input.object)
	var command any = text
	if c.input.listed {
		command = []string{text}
	}
	in[c.input.command] = json.RawMessage(write(command))
	if c.input.asText {
		return string(bytes.TrimSpace(write(in)))
	}
	return in
}

// toClaude answers Claude Code, Codex and Qwen Code.
func toClaude(c *Call, o Outcome) reply {
	switch c.Phase {
	case Setting:
		if o.Verdict == bawn.Allow {
			return reply{}
		}
		return reply{"decision": "block", "reason": o.Reason}
	case Approve:
		decision := reply{"behavior": o.Verdict.String()}
		if o.Verdict != bawn.Allow {
			decision["message"] = o.Reason
		} else if o.Rewritten != "" {
			decision["updatedInput"] = c.rewritten(o.Rewritten)
		}
		return reply{"hookSpecificOutput": reply{"hookEventName": c.Event, "decision": decision}}
	}
	specific := reply{"hookEventName": c.Event, "permissionDecision": o.Verdict.String(), "permissionDecisionReason": o.Reason}
	if o.Rewritten != "" && o.Verdict != bawn.Deny {
		specific["updatedInput"] = c.rewritten(o.Rewritten)
	}
	return reply{"hookSpecificOutput": specific}
}

func toGemini(c *Call, o Outcome) reply {
	r := reply{"decision": o.Verdict.String(), "reason": o.Reason}
	if o.Rewritten != "" && o.Verdict == bawn.Allow {
		r["hookSpecificOutput"] = reply{"hookEventName": c.Event, "tool_input": reply{c.input.command: o.Rewritten}}
	}
	return r
}

func toCopilot(c *Call, o Outcome) reply {
	if c.Phase == Approve {
		return reply{"behavior": o.Verdict.String(), "message": o.Reason}
	}
	r := reply{"permissionDecision": o.Verdict.String(), "permissionDecisionReason": o.Reason}
	if o.Rewritten != "" && o.Verdict != bawn.Deny {
		r["modifiedArgs"] = c.rewritten(o.Rewritten)
	}
	return r
}

func toCline(c *Call, o Outcome) reply {
	if o.Verdict != bawn.Allow {
		return reply{"cancel": true, "errorMessage": o.Reason}
	}
	r := reply{"cancel": false}
	if o.Rewritten != "" {
		r["overrideInput"] = c.rewritten(o.Rewritten)
	}
	return r
}

func toCrush(c *Call, o Outcome) reply {
	r := reply{"decision": o.Verdict.String(), "reason": o.Reason}
	if o.Rewritten != "" && o.Verdict == bawn.Allow {
		r["updated_input"] = c.rewritten(o.Rewritten)
	}
	return r
}

// toCursor answers in the words of both of its sorts of events.
func toCursor(_ *Call, o Outcome) reply {
	return reply{"permission": o.Verdict.String(), "decision": o.Verdict.String(), "reason": o.Reason, "user_message": o.Reason, "agent_message": o.Reason}
}

// toPlugin answers Bawn's own plugins, which take anything else than
// "allow" for a no:
//
//	{"decision":"allow","reason":"…","input":{…}}
func toPlugin(c *Call, o Outcome) reply {
	r := reply{"decision": o.Verdict.String(), "reason": o.Reason}
	if o.Rewritten != "" && o.Verdict == bawn.Allow {
		r["input"] = c.rewritten(o.Rewritten)
	}
	return r
}
