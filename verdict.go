package bawn

import "fmt"

// A Verdict says what becomes of an action. Verdicts are ordered by how much
// they permit, so the strictest of several is their minimum.
type Verdict uint8

const (
	Deny  Verdict = iota // the action does not happen
	Ask                  // the action happens if a human says so
	Allow                // the action happens
)

// Strictest returns the least permissive of vs. The strictest of nothing is
// Deny, and a value that is no verdict counts as Deny.
func Strictest(vs ...Verdict) Verdict {
	if len(vs) == 0 {
		return Deny
	}
	least := Allow
	for _, v := range vs {
		if v > Allow {
			return Deny
		}
		least = min(least, v)
	}
	return least
}

var verdictNames = []string{"deny", "ask", "allow"}

// String returns "deny", "ask" or "allow"; anything else reads "deny".
func (v Verdict) String() string {
	if v > Allow {
		return "deny"
	}
	return verdictNames[v]
}

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText accepts exactly "deny", "ask" or "allow". On any other text v
// becomes Deny and an error is returned.
func (v *Verdict) UnmarshalText(text []byte) error {
	n, err := unmarshalName("verdict", verdictNames, text)
	*v = Verdict(n)
	return err
}

// unmarshalName finds text in names. If text is unknown it returns 0, the refusing
// value, with an error that lists the names.
func unmarshalName(what string, names []string, text []byte) (uint8, error) {
	for i, name := range names {
		if name != "" && name == string(text) {
			return uint8(i), nil
		}
	}
	if names[0] == "" {
		names = names[1:]
	}
	return 0, fmt.Errorf("unknown %s %q; want one of %q", what, text, names)
}
