package grammar

import "strings"

// toolSettings are endings of variables of make and its like that name a
// program to run, or flags for one.
var toolSettings = []string{
	"SHELL", "SHELLFLAGS", "MAKEFLAGS", "MFLAGS", "MAKE", "MAKEFILES", "LAUNCHER", "WRAPPER", "LD_PRELOAD", "LD_LIBRARY_PATH", "VPATH", "PATH",
}

// toolNames are variables that may be set to one of knownTools.
var toolNames = NewWordSet("CC CXX LD AR AS CPP HOSTCC HOSTCXX FC RANLIB STRIP PYTHON GO NODE NPM CARGO DOCKER")

// knownTools are found by PATH, so they are what the machine has.
var knownTools = NewWordSet("gcc g++ cc c++ clang clang++ tcc gfortran ar ranlib strip go python python3 node npm yarn pnpm docker podman cargo")

// goal accepts a target of make, rake or just, or NAME=VALUE with a value
// that a shell which meets it in a recipe takes for plain words.
func (m *match) goal(w Word) error {
	name, v, ok := strings.Cut(w.Text, "=")
	if !ok {
		return m.arg(w)
	}
	name = strings.TrimRight(name, ":+?")
	for _, s := range toolSettings {
		if strings.HasSuffix(name, s) {
			return unproven("the setting ", name, " can choose what ", m.label, " runs")
		}
	}
	switch {
	case !identifier(name):
		return unproven(quote(name), " is no plain variable")
	case toolNames.Has(name) && !knownTools.Has(v):
		return unproven(quote(v), " is no tool that is known")
	case strings.ContainsAny(v, ";&|<>()`$\n\\\"'*?#"):
		return unproven("the value of ", name, " could be a command for a recipe's shell")
	}
	return m.opts(Word{Text: v})
}

// hooks are parts of compiler, linker and build options that load code, run a
// program or reach another source.
var hooks = []string{
	"plugin", "wrapper", "specs", "extld=", "extld ", "toolexec", "launcher", "agentpath", "agentlib", "javaagent", "runner", "linker=",
	"-load", "-exec", "exec.", "OnOutOfMemory", "OnError", "-B", "init-script", "bootclasspath", "LAUNCHER", "RULE_LAUNCH",
	"CMAKE_PROJECT_", "INCLUDE_BEFORE", "epository", "egistry", "://",
}

// opts accepts options for a compiler, a linker or a build, several in one
// word: they load nothing, and the paths among them lie in the workspace.
func (m *match) opts(w Word) error {
	s := w.Text
	for _, h := range hooks {
		if strings.Contains(s, h) {
			return unproven(quote(s), " could make ", m.label, " run something")
		}
	}
	if strings.ContainsAny(s, "`$\n;|&@") {
		return unproven(quote(s), " is not known to be harmless for ", m.label)
	}
	for field := range strings.FieldsFuncSeq(s, func(c rune) bool { return strings.ContainsRune(" \t,:='\"", c) }) {
		if i := strings.IndexAny(field, "/~"); i > 0 && strings.HasPrefix(field, "-") {
			field = field[i:] // -I/usr/include
		}
		if strings.HasPrefix(field, "/") || strings.HasPrefix(field, "~") || strings.HasPrefix(field, ".") || strings.Contains("/"+field+"/", "/../") {
			m.claim(Use, Word{Text: field})
		}
	}
	return nil
}
