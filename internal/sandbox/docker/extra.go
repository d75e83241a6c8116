package docker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Extra is what extra arguments ask for, once they are known to be harmless or
// allowed. The zero Extra asks for nothing.
type Extra struct {
	Labels     map[string]string
	Hostname   string
	Domainname string
	Hosts      []string         // "name:address"
	Tmpfs      map[string]int64 // path: MiB, 0 as the session's others
	Ulimits    []Ulimit
	ShmMB      int64 // 0: not stated
	MemoryMB   int64
	PIDs       int64
	CPUs       float64
	CPUShares  int64
	CPUSet     string
	MemSet     string
	OOMScore   int
	// What only the user's own configuration may ask for.
	Devices  []string // as --device has them
	GPUs     string
	Groups   []string
	Security []string
	Sysctls  map[string]string
	Runtime  string
	IPC, UTS string
	UserNS   string
	CgroupNS string
	Binds    []string          // as --volume has them
	InPart   []bawn.Capability // what holds only in part because of it
}

// A Ulimit is a resource limit by Docker's name for it, in the units of
// setrlimit(2).
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// An argument is a flag of docker-run(1).
type argument struct {
	boolean bool // takes no value
	// take applies a value, and errs where it would give the guest more than the
	// session has.
	take func(x *Extra, value string, r bawn.Resources) error
	// fine are values by which nothing changes.
	fine []string
	// widens says what the flag would do; it is applied where the user's own
	// configuration allows it.
	widens string
	// attribute is what holds only in part then.
	attribute string
	// never says why no configuration can have it applied.
	never string
}

// A FlagError says why an extra argument is refused.
type FlagError struct{ Argument, Why, Remedy string }

// Error puts it into a sentence.
func (e *FlagError) Error() string {
	text := fmt.Sprintf("extra argument %q: %s", e.Argument, e.Why)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// maxExtra bounds the words of a configuration.
const maxExtra = 256

// ParseExtra reads flags as docker run takes them: "--name=value", "--name",
// "value", "-n value" and "-nvalue". A flag that narrows the sandbox, or does
// not touch it, is applied within r. A flag that would widen it is refused with
// the reason, unless allowed has that very flag with its value
// ("--device=/dev/fuse"). Unknown flags are refused. All reasons are reported,
// joined by newlines, as *FlagError.
func ParseExtra(args, allowed []string, r bawn.Resources) (Extra, error) {
	x := Extra{Labels: map[string]string{}, Tmpfs: map[string]int64{}, Sysctls: map[string]string{}}
	if len(args) > maxExtra {
		return Extra{}, &FlagError{args[0], fmt.Sprintf("%d words are too many; want at most %d", len(args), maxExtra), ""}
	}
	var errs flagErrors
	for len(args) > 0 {
		word, rest, err := next(args)
		args = rest
		if err == nil {
			err = x.apply(word, allowed, r)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return Extra{}, errs
	}
	return x, nil
}

// flagErrors are all that is wrong.
type flagErrors []error

func (e flagErrors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

func (e flagErrors) Unwrap() []error { return e }

// A word is one flag with its value.
type word struct{ name, value string }

// String is the form in which flags are allowed.
func (w word) String() string {
	if flags[w.name].boolean {
		return "--" + w.name
	}
	return "--" + w.name + "=" + w.value
}

// next takes one flag with its value off args.
func next(args []string) (word, []string, error) {
	first, rest := args[0], args[1:]
	name, value, has, ok := split(first)
	f, known := flags[name]
	switch {
	case !ok:
		return word{}, rest, &FlagError{first, "it is no flag", "the image and the command are not given here"}
	case !known:
		return word{}, rest, &FlagError{first, "bawn does not know this flag, and can't tell what it would do", "leave it out"}
	case f.boolean && has && value == "false":
		return word{}, rest, &FlagError{first, "it would switch off what bawn relies on", "leave it out"}
	case f.boolean && has && value != "true":
		return word{}, rest, &FlagError{first, "it takes no value", "leave the value out"}
	case f.boolean || has:
		return word{name, value}, rest, nil
	case len(rest) == 0:
		return word{}, nil, &FlagError{first, "its value is missing", ""}
	}
	return word{name, rest[0]}, rest[1:], nil
}

// split takes one argument apart; a short flag's value may follow it at once.
func split(arg string) (name, value string, has, ok bool) {
	if long, is := strings.CutPrefix(arg, "--"); is && long != "" {
		name, value, has = strings.Cut(long, "=")
		return name, value, has, name != ""
	}
	if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' {
		return "", "", false, false
	}
	name, known := short[arg[1]]
	if !known {
		return arg, "", false, true // no flag's name
	}
	value = strings.TrimPrefix(arg[2:], "=")
	return name, value, len(arg) > 2, true
}

// short are docker run's flags of one letter.
var short = map[byte]string{
	'a': "attach", 'c': "cpu-shares", 'd': "detach", 'e': "env", 'h': "hostname", 'i': "interactive", 'l': "label",
	'm': "memory", 'P': "publish-all", 'p': "publish", 't': "tty", 'u': "user", 'v': "volume", 'w': "workdir",
}

// apply takes one flag.
func (x *Extra) apply(w word, allowed []string, r bawn.Resources) error {
	f := flags[w.name]
	switch {
	case slices.Contains(f.fine, w.value):
		return nil
	case f.never != "":
		return &FlagError{w.String(), f.never, ""}
	case f.widens != "" && !slices.Contains(allowed, w.String()):
		return &FlagError{w.String(), f.widens, fmt.Sprintf("name %q under allow_args in your own configuration if you mean it", w.String())}
	case f.take == nil:
		return nil // it is so anyway
	}
	if err := f.take(x, w.value, r); err != nil {
		return &FlagError{w.String(), err.Error(), ""}
	}
	if f.widens != "" {
		x.InPart = append(x.InPart, bawn.Capability{Attribute: f.attribute, Strength: bawn.Partly, How: "the engine", Why: w.String() + " is allowed by your configuration: " + f.widens})
	}
	return nil
}
