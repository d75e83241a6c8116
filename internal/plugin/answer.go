package plugin

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// MaxAnswer bounds a hook's answer about one action, in bytes with the end of
// the line.
const MaxAnswer = 64 << 10

// The possible verdicts of a hook.
const (
	Pass = "pass" // nothing: what was decided stands
	Ask  = "ask"  // a human is to be asked
	Deny = "deny"
)

// A Question describes one action to a hook, as one line of JSON.
type Question struct {
	ID        uint64   `json:"id"` // of the answer, too
	Kind      string   `json:"kind"`
	Operation string   `json:"operation"`
	Resource  string   `json:"resource"`
	Args      []string `json:"args"`
	Dir       string   `json:"dir"`
	Agent     string   `json:"agent"`
	Session   string   `json:"session"`
	Verdict   string   `json:"verdict"` // "allow" or "ask": so far
	Rule      string   `json:"rule"`    // that says so
}

// An Answer is a hook's answer about one action. The zero Answer says nothing.
type Answer struct {
	Verdict string // Pass, Ask or Deny
	Reason  string // in the hook's words, as they came
}

// ParseAnswer reads the line in which a hook answers the question of an id: one
// JSON object with the members "id", "verdict" and "reason", which may be left
// out. Everything else is an error, also a member twice or in capitals.
func ParseAnswer(line []byte, id uint64) (Answer, error) {
	if _, err := canonicalUpTo(line, MaxAnswer); err != nil {
		return Answer{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return Answer{}, fmt.Errorf("no object: %w", err)
	}
	var a Answer
	for name, text := range members {
		switch to := map[string]*string{"verdict": &a.Verdict, "reason": &a.Reason}[name]; {
		case name == "id":
		case to == nil:
			return Answer{}, fmt.Errorf("the unknown member %+q; want id, verdict and reason", cut(name))
		case text[0] != '"':
			return Answer{}, fmt.Errorf("%q is no text", name)
		default:
			if err := json.Unmarshal(text, to); err != nil {
				return Answer{}, err
			}
		}
	}
	if got := string(members["id"]); got != strconv.FormatUint(id, 10) {
		return Answer{}, fmt.Errorf("the id %+q; want %d", cut(got), id)
	}
	if a.Verdict != Pass && a.Verdict != Ask && a.Verdict != Deny {
		return Answer{}, fmt.Errorf("the verdict %+q; want pass, ask or deny", cut(a.Verdict))
	}
	return a, nil
}
