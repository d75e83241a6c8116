package bawn

// Autonomy is how much an agent may do where no rule speaks.
type Autonomy uint8

const (
	AutonomyNone     Autonomy = iota // deny unless a rule allows
	AutonomyLimited                  // deny by default, ask becomes deny
	AutonomyModerate                 // ask where no rule speaks
	AutonomyFull                     // allow except what is dangerous
)

var autonomyNames = []string{"none", "limited", "moderate", "full"}

// String returns the autonomy's name; what is no autonomy reads "none".
func (a Autonomy) String() string {
	if a > AutonomyFull {
		return "none"
	}
	return autonomyNames[a]
}

// MarshalText writes the autonomy's name.
func (a Autonomy) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText accepts exactly the four names; otherwise a becomes none.
func (a *Autonomy) UnmarshalText(text []byte) error {
	n, err := unmarshalName("autonomy", autonomyNames, text)
	*a = Autonomy(n)
	return err
}

// A Mode is the one knob of a session. Coder's modes and Koda's
// are values of the same type; the zero Mode is the strictest.
type Mode uint8

const (
	ModePlan       Mode = iota // Koda: look, do not touch
	ModeStrict                 // Coder: every action asks
	ModeSafe                   // Koda: changes are confirmed
	ModeNormal                 // Coder: ask where no rule speaks
	ModeAuto                   // both: decide by risk
	ModePermissive             // Coder: allow except what is dangerous
)

var modeNames = []string{"plan", "strict", "safe", "normal", "auto", "permissive"}

// String returns the mode's name; what is no mode reads "plan".
func (m Mode) String() string {
	if m > ModePermissive {
		return "plan"
	}
	return modeNames[m]
}

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText accepts exactly the six names; otherwise m becomes plan.
func (m *Mode) UnmarshalText(text []byte) error {
	n, err := unmarshalName("mode", modeNames, text)
	*m = Mode(n)
	return err
}

// ModeNames lists the modes from the strictest to the most permissive.
func ModeNames() []string { return append([]string(nil), modeNames...) }
