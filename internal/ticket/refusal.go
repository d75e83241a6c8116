package ticket

import "fmt"

// A Rule names why a ticket was refused, for the log.
type Rule string

// The rules, in the order in which they are tried.
const (
	RuleSize      Rule = "ticket:size"        // too large to be one
	RuleMalformed Rule = "ticket:malformed"   // not written as an issuer writes
	RuleKey       Rule = "ticket:unknown-key" // signed by nobody who is trusted now
	RuleForged    Rule = "ticket:forged"      // not signed by the key it names
	RuleVersion   Rule = "ticket:version"     // signed, but of another version
	RuleSession   Rule = "ticket:session"     // for another session
	RuleDigest    Rule = "ticket:digest"      // for another action
	RuleEarly     Rule = "ticket:early"       // issued in the future
	RuleExpired   Rule = "ticket:expired"     // its time is over
	RuleReplayed  Rule = "ticket:replayed"    // used before
)

// A RefusedError says why a ticket is not honoured. It holds nothing of what the
// ticket says, since the ticket may be forged.
type RefusedError struct {
	Rule Rule
	Why  string
}

// Error returns the rule and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the ticket is refused (%s): %s", e.Rule, e.Why)
}

func refuse(r Rule, format string, args ...any) *RefusedError {
	return &RefusedError{r, fmt.Sprintf(format, args...)}
}
