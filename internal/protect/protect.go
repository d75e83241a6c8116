package protect

import (
	_ "embed" // the data
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// A Class says why an entry is in the table. The zero Class is invalid.
type Class uint8

const (
	Host       Class = iota + 1 // a program of the host executes or obeys it
	Login                       // a shell, a login or the desktop executes it, from a home directory alone
	Agent                       // a coding agent's own place
	Guard                       // files that an agent obeys within its own place below the home directory
	Credential                  // it is not even read
	Bawn                        // Bawn's own
	Git                         // in a git directory, on which a sandbox rules part by part
)

var classes = []string{"", "host", "login", "agent", "guard", "credential", "bawn", "git"}

func (c Class) String() string { return classes[c] }

// An Entry is one line of the table. It is shared: nobody changes it.
type Entry struct {
	Class  Class
	System string // "all", "linux", "darwin" or "windows"
	// Pattern is a name in a project, at any depth but for Login, or a place "~/…" below
	// the home directory. One that ends in "/" is a directory with everything in it. A
	// "*" stands for any part of one name, and in a git directory "**" for any
	// directories.
	Pattern string
	By      string // which tools obey it, in words; of a credential: whose it is
	Why     string // what there is to obey, in a few words
	// Name is the agent of Agent and Guard, and the word for "open" of hidden places.
	Name string
}

// Home reports whether the entry is a place below the home directory.
func (e *Entry) Home() bool { return strings.HasPrefix(e.Pattern, "~/") }

// Dir reports whether it is a directory with all that it holds.
func (e *Entry) Dir() bool { return strings.HasSuffix(e.Pattern, "/") }

// Path is the pattern without "~/" and without a slash at its end.
func (e *Entry) Path() string { return strings.TrimSuffix(strings.TrimPrefix(e.Pattern, "~/"), "/") }

// Secret reports whether no tool of an agent may even read it.
func (e *Entry) Secret() bool { return e.Class == Credential || e.Class == Bawn && e.Home() }

// Opens reports whether isolation.unprotect can open it for a project.
func (e *Entry) Opens() bool {
	return !e.Home() && (e.Class == Host || e.Class == Login || e.Class == Agent)
}

// Counts reports whether it is an entry of a system, as runtime.GOOS names it; of
// each where system is "".
func (e *Entry) Counts(system string) bool {
	return e.System == "all" || e.System == system || system == ""
}

var (
	//go:embed data/project.txt
	projectText string
	//go:embed data/home.txt
	homeText string
	//go:embed data/credentials.txt
	credentialsText string
	//go:embed data/agents.txt
	agentsText string
	//go:embed data/git.txt
	gitText string
	//go:embed data/not.txt
	notText string
)

var (
	inProject   = sync.OnceValue(func() []Entry { return must(parse("project.txt", projectText)) })
	belowHome   = sync.OnceValue(func() []Entry { return must(parse("home.txt", homeText)) })
	credentials = sync.OnceValue(func() []Entry { return must(parse("credentials.txt", credentialsText)) })
	ofAgents    = sync.OnceValue(func() []Entry { return must(parse("agents.txt", agentsText)) })
	inGit       = sync.OnceValue(func() []Entry { return must(parse("git.txt", gitText)) })
)

// Project are the names in a project.
func Project() []Entry { return inProject() }

// Home are the places below the home directory that a program executes or obeys.
func Home() []Entry { return belowHome() }

// All is the whole table.
func All() []Entry {
	return slices.Concat(inProject(), inGit(), belowHome(), ofAgents(), credentials())
}

// Hidden are the places below the home directory that a session on a system does
// not see, each under its Name: credentials, and what each agent keeps. Entries
// within another one are left out.
func Hidden(system string) []*Entry {
	var list []*Entry
	agents := ofAgents()
	for i := range agents {
		if agents[i].Class == Agent && agents[i].Counts(system) {
			list = append(list, &agents[i])
		}
	}
	own := len(list)
	all := credentials()
	for i := range all {
		e := &all[i]
		within := func(o *Entry) bool { return strings.HasPrefix(e.Pattern, o.Pattern) }
		if e.Class == Credential && e.Counts(system) && !slices.ContainsFunc(list[:own], within) {
			list = append(list, e)
		}
	}
	return list
}

// OfAgent are the names in a project, and the places within its own one below the
// home directory ("~/…"), that the agent of a name obeys.
func OfAgent(name string) (project, guarded []string) {
	for _, e := range inProject() {
		if e.Class == Agent && e.Name == name {
			project = append(project, e.Path())
		}
	}
	for _, e := range ofAgents() {
		if e.Class == Guard && e.Name == name {
			guarded = append(guarded, e.Pattern)
		}
	}
	return project, guarded
}

// Key is the one form of a name that isolation.unprotect may hold. It errs if no
// entry has that name, or none that can be opened.
func Key(name string) (string, error) {
	clean := strings.TrimSuffix(name, "/")
	for _, e := range inProject() {
		if e.Opens() && Fold(e.Path()) == Fold(clean) {
			return e.Path(), nil
		}
	}
	return "", fmt.Errorf("%q is no protected name that can be opened; want one of docs/protected-names.md, such as %q", name, "rust-toolchain.toml")
}

// Keys are the names that Key takes.
func Keys() []string {
	var list []string
	for _, e := range inProject() {
		if e.Opens() {
			list = append(list, e.Path())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// A Missing is a name that somebody may look for in the table, and why it is not
// in it.
type Missing struct{ Name, Why string }

// Left are the names that were left out of the table.
func Left() []Missing {
	var list []Missing
	for line := range strings.Lines(notText) {
		if name, why, ok := strings.Cut(strings.TrimSpace(line), " | "); ok && name[0] != '#' {
			list = append(list, Missing{name, why})
		}
	}
	return list
}

// parse reads a file of data.
func parse(file, text string) ([]Entry, error) {
	list := make([]Entry, 0, strings.Count(text, "\n"))
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var class string
		var e Entry
		for _, field := range []*string{&class, &e.System, &e.Pattern, &e.By, &e.Why, &e.Name} {
			*field, line, _ = strings.Cut(line, " | ")
		}
		e.Class = Class(max(0, slices.Index(classes, class)))
		if err := e.check(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		list = append(list, e)
	}
	return list, nil
}

var systems = []string{"all", "linux", "darwin", "windows"}

// check finds errors in an entry; rest is the part of the line after its fields.
func (e *Entry) check(rest string) error {
	p := e.Path()
	switch {
	case e.Why == "" || rest != "":
		return fmt.Errorf("want CLASS | SYSTEM | PATTERN | OBEYED BY | WHY, and for some | NAME")
	case e.Class == 0:
		return fmt.Errorf("unknown class; want one of %q", classes[1:])
	case !slices.Contains(systems, e.System):
		return fmt.Errorf("unknown system %q; want one of %q", e.System, systems)
	case p == "" || p[0] == '/' || path.Clean(p) != p || strings.HasPrefix(p, ".."):
		return fmt.Errorf("pattern %q; want a name in a project or a place \"~/…\"", e.Pattern)
	case e.Class != Git && strings.Count(p, "*") > 1 && slices.ContainsFunc(strings.Split(p, "/"), func(s string) bool { return strings.Count(s, "*") > 1 }):
		return fmt.Errorf("pattern %q; want one \"*\" in a name at most", e.Pattern)
	case e.Home() && e.Class != Host && e.Class != Bawn && e.Name == "":
		return fmt.Errorf("%q has no name to open it by", e.Pattern)
	}
	return nil
}

// must makes a panic of an error in embedded data, which tests load.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
