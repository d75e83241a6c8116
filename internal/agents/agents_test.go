package agents

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestData parses every file, and compares the index with what it says.
func TestData(t *testing.T) {
	entries, err := data.ReadDir("data")
	if err != nil || len(entries) != len(known) {
		t.Fatalf("%d files, %v; the index has %d", len(entries), err, len(known))
	}
	for i, a := range All() {
		if got := strings.Join(a.Programs, " "); a.Name != known[i].name || got != known[i].programs {
			t.Errorf("%s is started as %q; the index says %+v", a.Name, got, known[i])
		}
		if len(a.Uncovered) == 0 || len(a.Files.State) == 0 || len(a.Files.ProjectGuard) == 0 || len(a.Environment.CA) == 0 || a.Login == "" {
			t.Errorf("%s: the data leaves out what there is to say of every agent", a.Name)
		}
		for _, program := range a.Programs {
			if got, ok := ByProgram(program); !ok || got != a {
				t.Errorf("%q is %v, %v", program, got, ok)
			}
		}
		if got, ok := ByName(a.Name); !ok || got != a {
			t.Errorf("%q is %v, %v", a.Name, got, ok)
		}
	}
	for _, name := range []string{"", "sh", "/usr/bin/claude", "claude.sh", "../claude", "cursor"} {
		if a, ok := ByProgram(name); ok {
			t.Errorf("program %q is taken for %s", name, a.Title)
		}
	}
	if a, ok := ByName("nobody"); ok {
		t.Errorf("got %v", a)
	}
}

// TestGuardLiesInState: what is guarded and lies nowhere that is written needs no
// guard, so a mistake in its name would not show.
func TestGuardLiesInState(t *testing.T) {
	w := World{Home: "/home/ada", Project: "/p", Getenv: func(string) string { return "" }}
	for _, a := range All() {
		state := a.ExpandAll(a.Files.State, w)
		for _, g := range a.ExpandAll(a.Files.Guard, w) {
			if !slices.ContainsFunc(state, func(s string) bool { return strings.HasPrefix(g, s+"/") }) {
				t.Errorf("%s: %q is guarded and lies in none of %q", a.Name, g, state)
			}
		}
		for _, file := range []string{a.Hooks.User, a.Hooks.Project} { // else a session could take the hooks away
			full, ok := a.Expand(file, w)
			guards := slices.Concat(a.ExpandAll(a.Files.Guard, w), a.ExpandAll(a.Files.Read, w), a.ExpandAll(a.Files.ProjectGuard, w))
			if file != "" && (!ok || !slices.ContainsFunc(guards, func(g string) bool { return full == g || strings.HasPrefix(full, g+"/") })) {
				t.Errorf("%s: its hooks are in %q, which nothing guards", a.Name, file)
			}
		}
		for _, dir := range slices.Concat(a.Files.Skills, a.Files.Definitions) { // nothing that is pinned is written in a session
			full, _ := a.Expand(dir, w)
			in := func(p string) bool { return strings.HasPrefix(full+"/", p+"/") }
			if slices.ContainsFunc(state, in) && !slices.ContainsFunc(a.ExpandAll(a.Files.Guard, w), in) {
				t.Errorf("%s: %q can be written", a.Name, dir)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	a, err := Parse("x", []byte(minimal+`[environment]`+"\n"+`homes = { X_HOME = "~/.x", Y_HOME = "~" }`))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	w := World{Home: "/home/ada", Project: "/p", Getenv: func(n string) string { return env[n] }}
	check := func(p, want string) {
		t.Helper()
		got, ok := a.Expand(p, w)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q with %v: %q, want %q", p, env, got, want)
		}
	}
	check("~/a/b", "/home/ada/a/b")
	check("a/b", "/p/a/b")
	check("$X_HOME", "/home/ada/.x")
	check("$X_HOME/c", "/home/ada/.x/c")
	check("$Y_HOME/.y", "/home/ada/.y")
	check("$Y_HOME", "")
	env["X_HOME"] = "/srv/x/"
	check("$X_HOME/c", "/srv/x/c")
	for _, dir := range []string{"relative", "/", "/home", "/home/ada", "/home/ada/../ada", "/home/ada/x/.."} {
		env["X_HOME"] = dir
		check("$X_HOME", "")
	}
	w.Project = ""
	check("a/b", "")
}

const minimal = "name = \"x\"\ntitle = \"X\"\nprograms = [\"x\"]\n"

// TestParse refuses what can't be right.
func TestParse(t *testing.T) {
	if _, err := Parse("x", []byte(minimal)); err != nil {
		t.Fatalf("the control: %v", err)
	}
	for text, want := range map[string]string{
		"name = \"y\"":                                                  "want \"x\"",
		"name = \"x\"":                                                  "no title",
		"name = \"x\"\ntitle = \"X\"":                                   "no programs",
		minimal + "verified = true":                                     "verified with no version",
		minimal + "nosuch = 1":                                          "nosuch",
		minimal + "models = [\"a b\"]":                                  "a b",
		minimal + "closed = [\"*\"]":                                    "*",
		minimal + "[files]\nstate = [\"a\"]":                            "lies in the project",
		minimal + "[files]\nstate = [\"$NO/a\"]":                        "environment.homes does not list",
		minimal + "[files]\nstate = [\"~/../a\"]":                       "without \"..\"",
		minimal + "[files]\nread = [\"~/\"]":                            "want",
		minimal + "[files]\nstate = [\"~/a\"]\nprivate = [\"~/a/b/c\"]": "directly in",
		minimal + "[files]\nskills = [\"/etc\"]":                        "want",
		minimal + "[environment]\nkeys = [\"a-b\"]":                     "a-b",
		minimal + "[environment]\npass = [\"*\"]":                       "PREFIX*",
		minimal + "[environment]\nset = [\"A\"]":                        "NAME=value",
		minimal + "[environment]\nhomes = { A = \"/etc\"}":              "/etc",
		minimal + "[hooks]\nkind = \"odd\"":                             "odd",
		minimal + "[hooks]\nveto = true":                                "of no kind",
		minimal + "[hooks]\nkind = \"plugin\"\ndefault_seconds = 5":     "wait 0",
	} {
		if a, err := Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, %v; want an error with %q", text, a, err, want)
		}
	}
	if _, err := Parse("x", []byte("name = \"x\"\ntitle = \"X\"\nprograms = [\"bin/x\"]\n")); err == nil {
		t.Error("a program with a directory is taken")
	}
}

func TestVariables(t *testing.T) {
	a, err := Parse("x", []byte(minimal+"[environment]\nkeys = [\"K\"]\npass = [\"P_*\"]\nset = [\"S=1\"]\nca = [\"C\"]\nhomes = { H = \"~/.x\" }"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"H", "K", "P_*", "C", "S=1"}, a.Variables()); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse: what is taken has no place that leads out of where it begins.
func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		text, err := data.ReadFile("data/" + name + ".toml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse("claude", text)
		if err != nil {
			return
		}
		w := World{Home: "/home/ada", Project: "/p", Getenv: func(string) string { return "" }}
		for _, p := range slices.Concat(a.Files.State, a.Files.Cache, a.Files.Read, a.Files.Guard) {
			if full, ok := a.Expand(p, w); ok && (!strings.HasPrefix(full, "/home/ada/") || full != path.Clean(full)) {
				t.Errorf("%q leads to %q", p, full)
			}
		}
	})
}
