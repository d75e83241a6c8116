package bawn

import "time"

// A Kind is the sort of resource an action touches. The zero Kind is no kind
// and is refused everywhere.
type Kind uint8

const (
	_ Kind = iota
	Filesystem
	Network
	Command
	Tool
)

var kindNames = []string{"", "filesystem", "network", "command", "tool"}

// String returns the kind's name, or "invalid".
func (k Kind) String() string { return name(kindNames, uint8(k)) }

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText accepts exactly the names of the four kinds.
func (k *Kind) UnmarshalText(text []byte) error {
	n, err := unmarshalName("kind", kindNames, text)
	*k = Kind(n)
	return err
}

// An Operation is what an action does to its resource. The zero Operation is
// refused everywhere.
type Operation uint8

const (
	_ Operation = iota
	Read
	Write
	Create
	Delete
	Exec
	Connect
	Call
)

var operationNames = []string{"", "read", "write", "create", "delete", "exec", "connect", "call"}

// String returns the operation's name, or "invalid".
func (o Operation) String() string { return name(operationNames, uint8(o)) }

// MarshalText writes the operation's name.
func (o Operation) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText accepts exactly the names of the operations.
func (o *Operation) UnmarshalText(text []byte) error {
	n, err := unmarshalName("operation", operationNames, text)
	*o = Operation(n)
	return err
}

// name returns names[n], or "invalid" if names has no entry for n.
func name(names []string, n uint8) string {
	if int(n) >= len(names) || names[n] == "" {
		return "invalid"
	}
	return names[n]
}

// An Action is what somebody wants to do.
type Action struct {
	Kind      Kind
	Operation Operation
	Resource  string    // a path, a host:port, a command line, a tool's name
	Args      []string  // for a command: argv, exactly as it would be executed
	Session   string    // the session that asks
	Agent     string    // the agent in it, as it calls itself
	Dir       string    // its working directory, absolute
	At        time.Time // the clock is an input of a decision
}

// Valid reports whether the action names a kind, an operation and a resource.
// An action that is not valid is denied.
func (a Action) Valid() bool {
	return a.Kind.String() != "invalid" && a.Operation.String() != "invalid" && a.Resource != ""
}
