package cli

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/guard"
)

// Of what the log has without a remedy, bawn why names one where one is known.
func TestRemedyOfARecord(t *testing.T) {
	for want, v := range map[string]bawn.Event{
		"bawn run --allow example.com":      {Kind: bawn.Network.String(), Resource: "example.com:443", Rule: guard.RuleApproval},
		"bawn run --allow example.com:8443": {Kind: bawn.Network.String(), Resource: "example.com:8443", Rule: guard.RuleApproval},
		"":                                  {Kind: bawn.Network.String(), Resource: "example.com:443", Rule: "user:1"},
		`"bawn policy explain" says what would allow it`: {Kind: bawn.Command.String(), Resource: "id", Rule: "user:1"},
		"take the other door":                            {Kind: bawn.Network.String(), Rule: guard.RuleApproval, Details: map[string]string{"remedy": "take the other door"}},
	} {
		if got := recordedReason(&v).Remedy; got != want {
			t.Errorf("%s by %s: %q; want %q", v.Resource, v.Rule, got, want)
		}
	}
}
