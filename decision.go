package bawn

// A Source says who stated a rule. Later sources are less trusted only in that
// each may be limited by what stands before it; see the policy's precedence.
type Source uint8

const (
	_ Source = iota
	Builtin
	Managed
	User
	Project
	SessionSource // said by the human for one session
	Learned
)

var sourceNames = []string{"", "builtin", "managed", "user", "project", "session", "learned"}

// String returns the source's name, or "invalid".
func (s Source) String() string { return name(sourceNames, uint8(s)) }

// MarshalText writes the source's name.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts exactly the names of the sources.
func (s *Source) UnmarshalText(text []byte) error {
	n, err := unmarshalName("source", sourceNames, text)
	*s = Source(n)
	return err
}

// A Rule gives a verdict to the actions its pattern matches. Match and
// NotMatch are examples that are checked when the rule is loaded.
type Rule struct {
	ID         string
	Kind       Kind
	Operations []Operation // none: every operation of the kind
	Pattern    string
	Verdict    Verdict
	Priority   int
	Source     Source
	Reason     string
	Match      []string
	NotMatch   []string
	When       When // the rules of people count always
}

// When says where a built-in rule counts.
type When uint8

const (
	WhenAlways      When = iota // everywhere
	WhenUncontained             // where no sandbox holds files, processes and network
	WhenUnasked                 // where a connection could leave the session without a question
)

var whenNames = []string{"always", "uncontained", "unasked"}

// String returns the name; an unknown When reads "always".
func (w When) String() string {
	if w > WhenUnasked {
		return "always"
	}
	return whenNames[w]
}

// MarshalText writes the name.
func (w When) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText accepts exactly these names; otherwise w becomes WhenAlways.
func (w *When) UnmarshalText(text []byte) error {
	n, err := unmarshalName("when", whenNames, text)
	*w = When(n)
	return err
}

// A Step is one thing that was considered on the way to a decision.
type Step struct {
	Stage   string  // for example "rule", "mode", "protected path"
	Verdict Verdict // what this step says by itself
	Why     string
}

// A Decision is a verdict with its why. Reason is for the agent and the human
// and never names a path outside the workspace; Rule and Trace are for the log
// and for the human who asks "why".
type Decision struct {
	Verdict   Verdict
	Reason    string
	Rule      string
	Source    Source
	Trace     []Step
	Canonical string   // of a command line: the text that was judged; only it may be executed
	Env       []string // NAME=VALUE that the execution must be given: the judgement relies on it
	// Holds widens a yes "for this session" beyond this action: to all questions
	// with the same words. "" is the action alone.
	Holds string
	// Single says that a yes counts once: no answer to the question is remembered as a yes.
	Single bool
}

// Denied returns a denial with its reason and the rule it came from.
func Denied(reason, rule string) Decision {
	return Decision{Verdict: Deny, Reason: reason, Rule: rule, Source: Builtin}
}
