package bawn_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

const module = "github.com/bawn-dev/bawn"

// A place is where a member of the house stands. A member is a package with
// everything below it: internal/sandbox and internal/sandbox/native are one.
// It may import members of lower floors only.
type place struct{ floor int }

func here(floor int) place { return place{floor} }

// ladder is the house. docs/dev/architecture.md draws it. A new package gets a row in the
// change that adds it.
var ladder = map[string]place{
	".": here(0),

	"internal/atomicfile": here(1),
	"internal/devices":    here(1),
	"internal/fspath":     here(1),
	"internal/hostname":   here(0), // netrule is made of names
	"internal/ipc":        here(1),
	"internal/linux":      here(1),
	"internal/netrule":    here(1),
	"internal/peercred":   here(1),
	"internal/protect":    here(1),
	"internal/places":     here(1),
	"internal/redact":     here(1),
	"internal/shell":      here(1),
	"internal/sigv4":      here(1),
	"internal/dotenv":     here(1),
	"internal/stack":      here(0),
	"internal/stdlog":     here(0),
	"internal/strictjson": here(0),
	"internal/stricttoml": here(0),
	"internal/symlink":    here(1),
	"internal/terminal":   here(2),
	"internal/testenv":    here(1),
	"proto":               here(1),
	"web":                 here(1),

	"internal/agents": here(2),
	"internal/config": here(2),
	"internal/hook":   here(2),
	"internal/intent": here(2),
	"internal/plugin": here(2),
	"internal/policy": here(2),
	"internal/sealed": here(2),
	"internal/skill":  here(2),

	"internal/audit":   here(3),
	"internal/secrets": here(3),
	"internal/session": here(3),
	"internal/ticket":  here(3),
	"internal/verb":    here(3),
	"internal/attach":  here(3),

	"internal/hooksetup":  here(3),
	"internal/pluginhook": here(3),

	"sdk": here(4), // what others import: over policy, audit and places only

	"internal/executor": here(4),
	"internal/guard":    here(4),

	"internal/approval":      here(5),
	"internal/sessionsocket": here(5),
	"internal/egress":        here(5),
	"internal/gateway":       here(5),
	"internal/sandbox":       here(5),

	"internal/dockerapi":  here(6),
	"internal/checkpoint": here(2),
	"internal/gitstore":   here(6),
	"internal/judge":      here(6),
	"internal/settings":   here(6),
	"internal/runner":     here(6),

	"internal/acp":       here(7),
	"internal/copies":    here(8),
	"internal/mcpserver": here(7),
	"internal/shim":      here(7),
	"internal/undo":      here(7),

	"internal/egressd": here(8),
	"internal/relay":   here(9),
	"internal/doctor":  here(8),

	"internal/launch":   here(9),
	"internal/relaycli": here(10),
	"internal/vaultcli": here(9),

	"internal/acpcli":    here(10),
	"internal/hookcli":   here(10),
	"internal/plugincli": here(10),
	"internal/policycli": here(10),
	"internal/undocli":   here(10),

	"internal/cli": here(11),

	"internal/reference": here(12),
	"internal/release":   here(12),

	"bench":           here(12),
	"examples":        here(12),
	"test":            here(12),
	"cmd/bawn":        here(12),
	"cmd/bawnd":       here(12),
	"cmd/bawn-egress": here(12),
}

// A reach says how far a ban looks.
type reach int

const (
	direct   reach = iota // the package's own imports
	ours                  // and those of our packages below it
	anywhere              // everything that is linked
)

// A ban forbids what the floors would allow, and says why.
type ban struct {
	from, to string
	reach    reach
	why      string
}

var bans = []ban{
	{".", "os", direct, "the words do no I/O"},
	{".", "net", direct, "the words do no I/O"},
	{".", "log", direct, "the words do no I/O"},

	{"internal/policy", "os", ours, "a decision is a function of its inputs"},
	{"internal/policy", "io/fs", ours, "a decision is a function of its inputs"},
	{"internal/policy", "net", ours, "a decision is a function of its inputs"},
	{"internal/policy", "time", direct, "the clock is an input: Action.At"},
	{"internal/policy", "math/rand", ours, "the same question gets the same answer"},
	{"internal/policy", "math/rand/v2", ours, "the same question gets the same answer"},
	{"internal/hook", "os", ours, "a hook's message is translated, nothing else"},
	{"internal/hook", "net", ours, "a hook's message is translated, nothing else"},

	{"internal/guard", "internal/policy", ours, "the guard is handed a bawn.Decider; its test hands it a broken one"},
	{"internal/guard", "internal/approval", ours, "the guard is handed a bawn.Approver; its test hands it a broken one"},
	{"internal/guard", "internal/audit", ours, "the guard is handed a bawn.Recorder; its test hands it a broken one"},
	{"internal/guard", "os", ours, "the guard touches nothing by itself"},
	{"internal/guard", "net", ours, "the guard touches nothing by itself"},

	{"internal/sandbox", "internal/secrets", ours, "a sandbox never holds a secret; egress puts it in outside"},
	{"internal/sandbox", "internal/audit", ours, "a child keeps no log; the guard has recorded already"},
	{"internal/gateway", "internal/secrets", ours, "a tool server never holds a secret; egress puts it in outside"},
	{"internal/gateway", "internal/audit", ours, "a child keeps no log; the guard has recorded already"},
	{"internal/egress", "internal/secrets", ours, "egress is handed a bawn.SecretSource; its test hands it a broken one"},
	{"cmd/bawn", "internal/secrets", ours, "the vault's ciphers cost start-up time; bawnd opens it"},
	{"internal/shim", "internal/secrets", ours, "the shim runs where the agent runs"},
	{"internal/shim", "internal/audit", ours, "the shim runs where the agent runs"},

	{"cmd/bawn", "net/http", anywhere, "start-up is on the hot path: net/http and TLS cost 0.7 ms; what needs them lives in bawnd"},
	{"cmd/bawn", "crypto/tls", anywhere, "start-up is on the hot path: net/http and TLS cost 0.7 ms; what needs them lives in bawnd"},
	{"cmd/bawn", "database/sql", anywhere, "bawn opens no database: events go to a file, bawnd keeps the index"},
	{"cmd/bawn", "github.com/yuin/goldmark", anywhere, "its tables take 0.5 ms to make; bawnd reads what is not pinned"},
	{"cmd/bawn", "text/template", ours, "templates cost start-up time and keep the linker from dropping methods"},
	{"cmd/bawn", "html/template", ours, "templates cost start-up time and keep the linker from dropping methods"},
	{"cmd/bawn", "internal/testenv", ours, "what only tests need stays out of the program"},
	{"cmd/bawnd", "internal/testenv", ours, "what only tests need stays out of the program"},
	{"cmd/bawn-egress", "internal/testenv", ours, "what only tests need stays out of the program"},
	{"cmd/bawn-egress", "internal/cli", ours, "it is the relay of one session, which waits for it to start"},
	{"cmd/bawn-egress", "google.golang.org/protobuf", anywhere, "every session with a network waits for the relay to start"},
	{"cmd/bawn-egress", "modernc.org/sqlite", anywhere, "every session with a network waits for the relay to start"},

	{"", "C", direct, "the programs are static: CGO_ENABLED=0"},
	{"", "log", direct, "log/slog is the one log"},
	{"", "io/ioutil", direct, "os and io have it"},
	{"", "plugin", direct, "plugins are programs in a session of their own"},
}

// A family is a member whose parts are held apart. The parts that are providers
// import no other provider, and what the providers share imports
// none: layout, supervise and kernel stand below all of them.
type family struct {
	member    string
	providers []string // parts of it
	users     []string // parts that may import any provider
}

var sandboxes = family{
	member:    "internal/sandbox",
	providers: []string{"native", "bwrap", "docker", "gvisor", "seatbelt", "host"},
	users:     []string{"sandboxtest"},
}

// A node is one package of the graph: what go list says of it.
type node struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

func TestArchitecture(t *testing.T) {
	testenv.Need(t, "go")
	var graph []node
	for _, goos := range []string{"linux", "darwin"} {
		graph = append(graph, list(t, goos)...)
	}
	for _, v := range violations(ladder, bans, sandboxes, graph) {
		t.Error(v)
	}
	for _, n := range graph { // what libraries print may hold secrets
		if strings.HasPrefix(n.ImportPath, module+"/cmd/") && !strings.Contains(n.ImportPath, "/cmd/bawn/") && !slices.Contains(n.Deps, module+"/internal/stdlog") {
			t.Errorf("%s does not import internal/stdlog", n.ImportPath)
		}
	}
}

// list returns this module's packages as they are built for goos.
func list(t *testing.T, goos string) []node {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, &stderr)
	}
	var graph []node
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var n node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return graph
		} else if err != nil {
			t.Fatal(err)
		}
		graph = append(graph, n)
	}
}

// violations checks a graph against a ladder, bans and a family and returns every
// breach once, sorted.
func violations(ladder map[string]place, bans []ban, f family, graph []node) []string {
	found := map[string]bool{}
	built := map[string]bool{}
	byPath := map[string][]node{}
	for _, n := range graph {
		byPath[n.ImportPath] = append(byPath[n.ImportPath], n)
	}
	for _, n := range graph {
		from := relative(n.ImportPath)
		m, ok := member(ladder, from)
		if !ok {
			found[from+" has no floor: say in arch_test.go where it belongs"] = true
			continue
		}
		built[m] = true
		for _, v := range climbs(ladder, m, n) {
			found[v] = true
		}
		for _, v := range broken(bans, byPath, n) {
			found[v] = true
		}
		for _, v := range f.siblings(n) {
			found[v] = true
		}
	}
	for m := range ladder {
		if !built[m] {
			found[m+" has a floor but is no package"] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// climbs returns the imports of n that do not lead downwards. Tests obey the
// ladder too; only testenv is open to the tests of every floor.
func climbs(ladder map[string]place, from string, n node) []string {
	var out []string
	check := func(imports []string, test bool) {
		for _, path := range imports {
			path, _, _ = strings.Cut(path, " [") // "pkg [pkg.test]"
			to, ok := member(ladder, relative(path))
			if !ok || !inModule(path) || to == from || test && to == "internal/testenv" {
				continue
			}
			if up, down := ladder[from].floor, ladder[to].floor; down >= up {
				out = append(out, fmt.Sprintf("%s (floor %d) imports %s (floor %d): only lower floors may be imported",
					relative(n.ImportPath), up, relative(path), down))
			}
		}
	}
	check(n.Imports, false)
	check(n.TestImports, true)
	check(n.XTestImports, true)
	return out
}

// siblings returns the providers that n imports though it is in another part of
// the family.
func (f family) siblings(n node) []string {
	from := f.part(n.ImportPath)
	if !below(f.member, relative(n.ImportPath)) || slices.Contains(f.users, from) {
		return nil
	}
	var out []string
	for _, path := range slices.Concat(n.Imports, n.TestImports, n.XTestImports) {
		if to := f.part(path); to != from && slices.Contains(f.providers, to) {
			out = append(out, fmt.Sprintf("%s imports provider %s: providers import no other provider, and what they share imports none; put it in layout, supervise or kernel",
				relative(n.ImportPath), relative(path)))
		}
	}
	return out
}

// part is the part of the family that an import path lies in, or "".
func (f family) part(path string) string {
	path, _, _ = strings.Cut(path, " [") // "pkg [pkg.test]"
	rest, ok := strings.CutPrefix(relative(path), f.member+"/")
	if !ok {
		return ""
	}
	part, _, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(strings.TrimSuffix(part, ".test"), "_test")
}

// broken returns the bans that n breaks.
func broken(bans []ban, byPath map[string][]node, n node) []string {
	var out []string
	for _, b := range bans {
		if !below(b.from, relative(n.ImportPath)) {
			continue
		}
		for _, by := range importers(b, byPath, n) {
			out = append(out, fmt.Sprintf("%s imports %s%s: %s", relative(n.ImportPath), b.to, by, b.why))
		}
	}
	return out
}

// importers says by which way n reaches what b forbids: "" for directly.
func importers(b ban, byPath map[string][]node, n node) []string {
	hit := func(paths []string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return p == b.to || below(b.to, relative(p)) && inModule(p) })
	}
	switch {
	case hit(n.Imports):
		return []string{""}
	case b.reach == anywhere && hit(n.Deps):
		return []string{" through others"}
	case b.reach == ours:
		for _, dep := range n.Deps {
			if slices.ContainsFunc(byPath[dep], func(d node) bool { return hit(d.Imports) }) {
				return []string{" through " + relative(dep)}
			}
		}
	}
	return nil
}

func inModule(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// relative turns an import path of this module into a path below its root.
func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// below reports whether path is dir or lies below it; "" is above everything.
func below(dir, path string) bool {
	return dir == "" || path == dir || strings.HasPrefix(path, dir+"/")
}

// member returns the entry of the ladder that path belongs to.
func member(ladder map[string]place, path string) (string, bool) {
	var fits []string
	for m := range ladder {
		if below(m, path) {
			fits = append(fits, m)
		}
	}
	if len(fits) == 0 {
		return "", false
	}
	return slices.MaxFunc(fits, func(a, b string) int { return cmp.Compare(len(a), len(b)) }), true
}

// TestViolationsAreFound feeds the checker a small house and breaks it in
// every way once: a checker that can't fail checks nothing.
func TestViolationsAreFound(t *testing.T) {
	const m = module + "/"
	house := map[string]place{
		".": here(0), "internal/a": here(1), "internal/b": here(1), "internal/testenv": here(1),
		"internal/top": here(2), "cmd/x": here(3),
	}
	rules := []ban{
		{"internal/a", "os", direct, "pure"},
		{"internal/top", "time", ours, "no clock"},
		{"internal/top", "internal/b", direct, "handed in"},
		{"cmd/x", "net/http", anywhere, "lean"},
		{"", "C", direct, "static"},
	}
	relatives := family{member: "internal/top", providers: []string{"one", "other"}, users: []string{"trial"}}
	sound := func() map[string]*node {
		return map[string]*node{
			".":                {ImportPath: module, Imports: []string{"fmt"}},
			"internal/a":       {ImportPath: m + "internal/a", Imports: []string{module}, TestImports: []string{m + "internal/testenv"}},
			"internal/a/sub":   {ImportPath: m + "internal/a/sub", Imports: []string{m + "internal/a"}},
			"internal/b":       {ImportPath: m + "internal/b", Imports: []string{"os", "net/http"}},
			"internal/testenv": {ImportPath: m + "internal/testenv", Imports: []string{"os"}},
			"internal/top":     {ImportPath: m + "internal/top", Imports: []string{m + "internal/a"}, Deps: []string{m + "internal/a", module}},
			"one":              {ImportPath: m + "internal/top/one", Imports: []string{m + "internal/top", m + "internal/top/shared"}},
			"one/part":         {ImportPath: m + "internal/top/one/part", Imports: []string{m + "internal/top/one"}},
			"other":            {ImportPath: m + "internal/top/other", Imports: []string{m + "internal/top/shared"}},
			"shared":           {ImportPath: m + "internal/top/shared", Imports: []string{m + "internal/a"}},
			"trial":            {ImportPath: m + "internal/top/trial", Imports: []string{m + "internal/top/one", m + "internal/top/other"}},
			"cmd/x":            {ImportPath: m + "cmd/x", Imports: []string{m + "internal/top"}, Deps: []string{"os"}},
		}
	}
	tests := []struct {
		name   string
		change func(g map[string]*node)
		want   string
	}{
		{"upwards", func(g map[string]*node) { add(g["internal/a"], m+"internal/top") }, "internal/a (floor 1) imports internal/top (floor 2)"},
		{"sideways", func(g map[string]*node) { add(g["internal/b"], m+"internal/a") }, "internal/b (floor 1) imports internal/a (floor 1)"},
		{"sideways from below", func(g map[string]*node) { add(g["internal/a/sub"], m+"internal/b") }, "internal/a/sub (floor 1) imports internal/b (floor 1)"},
		{"the root imports", func(g map[string]*node) { add(g["."], m+"internal/b") }, ". (floor 0) imports internal/b (floor 1)"},
		{"a test climbs", func(g map[string]*node) { g["internal/a"].XTestImports = []string{m + "internal/top"} }, "internal/a (floor 1) imports internal/top (floor 2)"},
		{"testenv in the program", func(g map[string]*node) { add(g["internal/a"], m+"internal/testenv") }, "internal/a (floor 1) imports internal/testenv (floor 1)"},
		{"a direct ban", func(g map[string]*node) { add(g["internal/a"], "os") }, "internal/a imports os: pure"},
		{"a ban on the family", func(g map[string]*node) { add(g["internal/a/sub"], "os") }, "internal/a/sub imports os: pure"},
		{"a ban on a package of ours", func(g map[string]*node) { add(g["internal/top"], m+"internal/b") }, "internal/top imports internal/b: handed in"},
		{"a ban through ours", func(g map[string]*node) { add(g["internal/a"], "time") }, "internal/top imports time through internal/a: no clock"},
		{"a ban through anybody", func(g map[string]*node) { g["cmd/x"].Deps = []string{"net/http"} }, "cmd/x imports net/http through others: lean"},
		{"a ban on all", func(g map[string]*node) { add(g["internal/b"], "C") }, "internal/b imports C: static"},
		{"a provider imports a sibling", func(g map[string]*node) { add(g["one"], m+"internal/top/other") }, "internal/top/one imports provider internal/top/other"},
		{"a part of one does", func(g map[string]*node) { add(g["one/part"], m+"internal/top/other") }, "internal/top/one/part imports provider internal/top/other"},
		{"a provider's test does", func(g map[string]*node) { g["other"].XTestImports = []string{m + "internal/top/one/part"} }, "internal/top/other imports provider internal/top/one/part"},
		{"what is shared imports a provider", func(g map[string]*node) { add(g["shared"], m+"internal/top/one") }, "internal/top/shared imports provider internal/top/one"},
		{"the family imports a provider", func(g map[string]*node) { add(g["internal/top"], m+"internal/top/one") }, "internal/top imports provider internal/top/one"},
		{"a new package", func(g map[string]*node) { g["u"] = &node{ImportPath: m + "internal/util"} }, "internal/util has no floor"},
		{"a package is gone", func(g map[string]*node) { delete(g, "internal/b") }, "internal/b has a floor but is no package"},
	}
	check := func(g map[string]*node) []string {
		var graph []node
		for _, n := range g {
			graph = append(graph, *n)
		}
		return violations(house, rules, relatives, graph)
	}
	if got := check(sound()); len(got) != 0 {
		t.Fatalf("control: the sound house has %q", got)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := sound()
			tt.change(g)
			got := check(g)
			if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("got %q, want one that begins with %q", got, tt.want)
			}
		})
	}
}

func add(n *node, path string) { n.Imports = append(n.Imports, path) }
