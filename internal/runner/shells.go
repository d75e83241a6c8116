//go:build linux || darwin

package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// otherShells are shells whose language is not understood here. They are covered
// like the others, so that text for them is refused and not run beside the
// policy. Programs that are many in one are among them: "busybox sh" is a shell,
// and their others go with it.
var otherShells = []string{"rbash", "mksh", "lksh", "pdksh", "yash", "posh", "oksh", "fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "busybox", "toybox"}

// ShellCall returns how this program was called if its own path says that it
// replaces a shell, and nil otherwise. The caller chooses argv[0]; if that
// names no shell, the path is used.
func ShellCall(argv []string) []string {
	self, err := os.Executable()
	if err != nil || !isShell(self) {
		return nil
	}
	if len(argv) == 0 {
		return []string{self}
	}
	if argv = slices.Clone(argv); invocation.NameOf(argv[0]) == "" {
		argv[0] = self
	}
	return argv
}

// isShell reports whether a program is a shell by its name.
func isShell(path string) bool {
	name := filepath.Base(path)
	return slices.Contains(invocation.Names, name) || slices.Contains(otherShells, name)
}

// shellDirs are where a system keeps shells, whatever PATH says.
var shellDirs = []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin"}

// private are places of which each session has its own, without the host's
// files.
var private = []string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc", "/sys"}

// A MultiCallError says that a shell is a program that is many others too.
type MultiCallError struct{ Shell, Program string }

func (e *MultiCallError) Error() string {
	return fmt.Sprintf("%q is %q, which is many programs in one, so that the shell can't be covered without the others", e.Shell, e.Program)
}

// Shells returns the programs that are a shell of this machine, with every link
// resolved, each once. It looks in the usual directories, in /etc/shells, in the
// search path and at further absolute names. Programs below a directory of skip
// are left out. It errs with a *MultiCallError where sh or bash is no program of
// its own.
func Shells(searchPath string, skip []string, further ...string) ([]string, error) {
	dirs := shellDirs
	for _, d := range filepath.SplitList(searchPath) {
		if filepath.IsAbs(d) {
			dirs = append(slices.Clip(dirs), d)
		}
	}
	names := slices.Concat(further, listed("/etc/shells"))
	for _, d := range dirs {
		for _, n := range slices.Concat(invocation.Names, otherShells) {
			names = append(names, filepath.Join(d, n))
		}
	}
	var found []string
	for _, name := range names {
		real, err := filepath.EvalSymlinks(name)
		info, statErr := os.Stat(real)
		if err != nil || statErr != nil || !info.Mode().IsRegular() || slices.ContainsFunc(slices.Concat(private, skip), func(p string) bool { return fspath.Below(real, p) }) {
			continue
		}
		base, n := filepath.Base(real), filepath.Base(name)
		if (base == "busybox" || base == "toybox") && (n == "sh" || n == "bash") {
			return nil, &MultiCallError{name, real}
		}
		if !slices.Contains(found, real) {
			found = append(found, real)
		}
	}
	slices.Sort(found)
	return found, nil
}

// listed reads a file of names, one a line (shells(5)).
func listed(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil // a machine without it has shells all the same
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); filepath.IsAbs(line) {
			names = append(names, line)
		}
	}
	return names
}

// A ScriptError says that a program is a script of a shell.
type ScriptError struct {
	Program, Shell string
	Starts         string // the line with which it starts something else, or ""
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("%q is a script of %s: in a split session the shell, and with it the agent, would run where commands do, which does not reach the model", e.Program, e.Shell)
}

// maxInterpreters is how many scripts the kernel goes through until there is a
// program (execve(2)).
const maxInterpreters = 5

// CheckAgent errs with a *ScriptError where a program of the host is a script
// that one of shells would interpret. A file that can't be read is skipped: it
// can't be started either.
func CheckAgent(program, searchPath string, shells []string) error {
	at := program
	for range maxInterpreters {
		words, rest := interpreter(at)
		if len(words) == 0 {
			return nil
		}
		next := words[0]
		if filepath.Base(next) == "env" {
			next = lookPath(envProgram(words[1:]), searchPath)
		}
		real, err := filepath.EvalSymlinks(next)
		if err != nil {
			return nil //nolint:nilerr // the kernel finds nothing either
		}
		if slices.Contains(shells, real) {
			return &ScriptError{Program: program, Shell: next, Starts: starts(rest)}
		}
		at = real
	}
	return nil
}

// A LauncherError says that a program starts others by a shell.
type LauncherError struct {
	Program string
	Starts  string // the program that it would start, by its path, or ""
}

func (e *LauncherError) Error() string {
	return fmt.Sprintf("%q starts a program by a shell: in a split session that program would run where commands do, which does not reach the model", e.Program)
}

// launchers are programs that start others by a shell, with the verbs that do; npx
// needs none.
var launchers = map[string][]string{"npx": nil, "npm": {"exec", "x", "run", "run-script", "start", "restart", "stop", "test", "t"}}

// CheckLauncher errs with a *LauncherError where the agent's command line is one of a
// launcher.
func CheckLauncher(argv []string, dir string) error {
	e := &LauncherError{Program: filepath.Base(argv[0])}
	verbs, known := launchers[e.Program]
	words := slices.DeleteFunc(slices.Clone(argv[1:]), func(w string) bool { return strings.HasPrefix(w, "-") })
	switch {
	case !known:
		return nil
	case len(verbs) > 0 && (len(words) == 0 || !slices.Contains(verbs, words[0])):
		return nil
	case len(verbs) > 0:
		e.Program, words = e.Program+" "+words[0], words[1:]
	}
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		program := filepath.Join("node_modules/.bin", words[0])
		if info, err := os.Stat(filepath.Join(dir, program)); err == nil && info.Mode().IsRegular() {
			e.Starts = program
		}
	}
	return e
}

// maxScript is how much of a script is looked at.
const maxScript = 64 << 10

// interpreter returns the words after "#!" of a script, and the rest. It returns no
// words for a file that is not a script.
func interpreter(path string) (words []string, rest string) {
	f, err := os.Open(path)
	if err != nil {
		return nil, ""
	}
	defer f.Close()
	data, err := io.ReadAll(bufio.NewReader(io.LimitReader(f, maxScript)))
	text, ok := strings.CutPrefix(string(data), "#!")
	if err != nil || !ok {
		return nil, ""
	}
	line, rest, _ := strings.Cut(text, "\n")
	return strings.Fields(line), rest
}

// envProgram is the program that env(1) starts: the first word that is neither
// an option nor a variable.
func envProgram(words []string) string {
	for _, w := range words {
		w = strings.TrimPrefix(strings.TrimPrefix(w, "-S"), "--split-string=")
		if w != "" && !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w
		}
	}
	return ""
}

// lookPath returns where a name leads, or "".
func lookPath(name, searchPath string) string {
	if strings.Contains(name, "/") || name == "" {
		return name
	}
	for _, d := range filepath.SplitList(searchPath) {
		p := filepath.Join(d, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

// starts returns the last line of a script that replaces the shell.
func starts(script string) string {
	last := ""
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "exec ") && len(line) < 300 {
			last = line
		}
	}
	return last
}

// LookAgent returns where the program of a command line is.
func LookAgent(name, dir, searchPath string) (string, error) {
	p := lookPath(name, searchPath)
	if p == "" {
		return "", errors.New("there is no such program in PATH")
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(dir, p)
	}
	return p, nil
}
