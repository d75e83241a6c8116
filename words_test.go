package bawn

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// zeroes says of every exported type what its zero value must refuse. A new
// exported type fails TestEveryZeroValueRefuses until it has a row.
var zeroes = map[string]func() bool{
	"Action":      func() bool { return !Action{}.Valid() },
	"Answer":      func() bool { return Answer{}.Verdict == Deny && Answer{}.Scope == Once },
	"Decision":    func() bool { return Decision{}.Verdict == Deny },
	"Event":       func() bool { return Event{}.Requested == Deny && Event{}.Resolved == Deny },
	"Rule":        func() bool { return Rule{}.Verdict == Deny && Rule{}.Source.String() == "invalid" },
	"Step":        func() bool { return Step{}.Verdict == Deny },
	"Contained":   func() bool { return len(Contained{}.Missing(ContainedFully)) == 3 },
	"When":        func() bool { return When(0) == WhenAlways },
	"Verdict":     func() bool { var v Verdict; return v == Deny && v.String() == "deny" },
	"Kind":        func() bool { return Kind(0).String() == "invalid" },
	"Operation":   func() bool { return Operation(0).String() == "invalid" },
	"Source":      func() bool { return Source(0).String() == "invalid" },
	"Scope":       func() bool { var s Scope; return s == Once },
	"Access":      func() bool { var a Access; return a == Hidden },
	"Mount":       func() bool { return Mount{}.Access == Hidden },
	"GitDir":      func() bool { return GitDir{}.Private == "" && len(GitDir{}.Objects) == 0 },
	"GitObjects":  func() bool { return GitObjects{} == GitObjects{Source: ""} },
	"NetworkMode": func() bool { var n NetworkMode; return n == NetworkNone },
	"CacheMode":   func() bool { var c CacheMode; return c == CacheReadOnly },
	"Strength":    func() bool { var s Strength; return s == Unenforced },
	"Capability":  func() bool { return Capability{}.Strength == Unenforced },
	"Autonomy":    func() bool { var a Autonomy; return a == AutonomyNone },
	"Mode":        func() bool { var m Mode; return m == ModePlan },
	"Isolation":   func() bool { return closed(Isolation{}) },
	"Session": func() bool {
		s := Session{}
		return s.Mode == ModePlan && s.Autonomy == AutonomyNone && closed(s.Isolation) && s.Provider == ""
	},
	"Ticket": func() bool { return Ticket{}.Expires.IsZero() },
	"Secret": func() bool { return len(Secret{}.Reveal()) == 0 },
	"Binding": func() bool {
		b := Binding{}
		return b.Host == "" && b.Place.String() == "invalid" && b.File == "" && b.Env == ""
	},
	"Place": func() bool { return Place(0).String() == "invalid" },
	"Egress": func() bool {
		return len(Egress{}.Hosts)+len(Egress{}.HostPorts)+len(Egress{}.Ports)+len(Egress{}.Secrets) == 0
	},
	"Resources": func() bool { return Resources{} == Resources{CPUs: 0} }, // states no limit: the profile does, see the conformance suite

	"Decider":      isNil[Decider],
	"Approver":     isNil[Approver],
	"Recorder":     isNil[Recorder],
	"SecretSource": isNil[SecretSource],
}

func isNil[T any]() bool { var v T; return any(v) == nil }

// closed reports whether nothing can be written, reached or seen.
func closed(i Isolation) bool {
	return i.Workspace == "" && len(i.Mounts)+len(i.Egress.Hosts)+len(i.Env)+len(i.SetEnv)+len(i.CacheDirs)+len(i.Devices) == 0 &&
		i.Network == NetworkNone && i.Caches == CacheReadOnly
}

func TestEveryZeroValueRefuses(t *testing.T) {
	names := exportedTypes(t)
	for _, name := range names {
		refuses, ok := zeroes[name]
		switch {
		case !ok:
			t.Errorf("the exported type %s has no row in zeroes: say what its zero value refuses", name)
		case !refuses():
			t.Errorf("the zero %s does not refuse", name)
		}
	}
	for name := range zeroes {
		if !slices.Contains(names, name) {
			t.Errorf("zeroes has a row for %s, which is no exported type", name)
		}
	}
}

func exportedTypes(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, f := range sources(t) {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() {
					names = append(names, ts.Name.Name)
				}
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("found only the exported types %q", names)
	}
	return names
}

// sources parses the package's own files.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// text is what every word that is written as a name can do.
type text interface {
	fmt.Stringer
	encoding.TextMarshaler
}

// words has one entry per type that is written as a name: how to make its
// n-th value, how to read one, and how many there are; refused counts the
// names that must not be readable at the beginning (the "no kind" of a kind).
var words = map[string]struct {
	make    func(n uint8) text
	read    func(s string) (text, error)
	names   []string
	refusal string // how the refusing value reads
	hole    bool   // value 0 has no name of its own
}{
	"Verdict":     {word[Verdict], reader[Verdict], verdictNames, "deny", false},
	"Kind":        {word[Kind], reader[Kind], kindNames, "invalid", true},
	"Operation":   {word[Operation], reader[Operation], operationNames, "invalid", true},
	"Place":       {word[Place], reader[Place], placeNames, "invalid", true},
	"Source":      {word[Source], reader[Source], sourceNames, "invalid", true},
	"Access":      {word[Access], reader[Access], accessNames, "hidden", false},
	"NetworkMode": {word[NetworkMode], reader[NetworkMode], networkNames, "none", false},
	"CacheMode":   {word[CacheMode], reader[CacheMode], cacheNames, "read-only", false},
	"Strength":    {word[Strength], reader[Strength], strengthNames, "no", false},
	"Autonomy":    {word[Autonomy], reader[Autonomy], autonomyNames, "none", false},
	"Mode":        {word[Mode], reader[Mode], modeNames, "plan", false},
}

func word[T interface {
	~uint8
	text
}](n uint8) text {
	return T(n)
}

func reader[T text, P interface {
	*T
	encoding.TextUnmarshaler
}](s string) (text, error) {
	var v T
	err := P(&v).UnmarshalText([]byte(s))
	return v, err
}

func TestWordsRoundTrip(t *testing.T) {
	for name, w := range words {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for n := range len(w.names) {
				v := w.make(uint8(n))
				b, err := v.MarshalText()
				if err != nil || string(b) != v.String() || seen[string(b)] {
					t.Fatalf("value %d is written %q, %v; it reads %q", n, b, err, v)
				}
				seen[string(b)] = true
				if w.hole && n == 0 {
					continue
				}
				if got, err := w.read(string(b)); err != nil || got != v {
					t.Errorf("%q is read as %v, %v; want %v", b, got, err, v)
				}
			}
		})
	}
}

// TestWordsRefuseTheUnknown: an unknown value reads as the refusing one, and an
// unknown text becomes the refusing value with an error.
func TestWordsRefuseTheUnknown(t *testing.T) {
	for name, w := range words {
		t.Run(name, func(t *testing.T) {
			for n := len(w.names); n <= math.MaxUint8; n++ {
				if got := w.make(uint8(n)).String(); got != w.refusal {
					t.Fatalf("value %d reads %q, want %q", n, got, w.refusal)
				}
			}
			last := w.names[len(w.names)-1]
			for _, s := range []string{"", " ", "invalid", "2", strings.ToUpper(last), last + " ", " " + last, last + "\x00", last[:1]} {
				got, err := w.read(s)
				if err == nil || got != w.make(0) {
					t.Errorf("%q is read as %v, %v; want the zero value and an error", s, got, err)
				}
				if err != nil && !strings.Contains(err.Error(), last) {
					t.Errorf("the error %q does not say which names there are", err)
				}
			}
		})
	}
}

// TestUnmarshalOverwrites: a failed read does not leave the permissive value
// that was there before.
func TestUnmarshalOverwrites(t *testing.T) {
	v, n, a := Allow, NetworkFull, ReadWrite
	for _, u := range []encoding.TextUnmarshaler{&v, &n, &a} {
		if err := u.UnmarshalText([]byte("yes")); err == nil {
			t.Errorf("%T accepts %q", u, "yes")
		}
	}
	if v != Deny || n != NetworkNone || a != Hidden {
		t.Errorf("after a failed read: %v, %v, %v; want deny, none, hidden", v, n, a)
	}
}

func TestStrictest(t *testing.T) {
	if got := Strictest(); got != Deny {
		t.Errorf("Strictest() = %v, want deny", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Verdict {
			return Verdict(rapid.SampledFrom([]uint8{0, 1, 2, 2, 2, 3, 7, 255}).Draw(t, "v"))
		}), 1, 6).Draw(t, "vs")
		got := Strictest(vs...)
		want := Allow
		for _, v := range vs {
			if v > Allow {
				v = Deny
			}
			want = min(want, v)
		}
		if got != want {
			t.Fatalf("Strictest(%v) = %v, want %v", vs, got, want)
		}
		if shuffled := rapid.Permutation(vs).Draw(t, "shuffled"); Strictest(shuffled...) != got {
			t.Fatalf("Strictest(%v) = %v, but %v for %v", vs, got, Strictest(shuffled...), shuffled)
		}
		if Strictest(append(vs, got)...) != got {
			t.Fatalf("Strictest(%v, %v) is not %v", vs, got, got)
		}
		if Strictest(append(vs, Allow)...) != got {
			t.Fatalf("a further allow changed Strictest(%v)", vs)
		}
	})
}

func TestSecretNeverPrints(t *testing.T) {
	const value = "hunter2"
	s := NewSecret([]byte(value))
	if !bytes.Equal(s.Reveal(), []byte(value)) {
		t.Fatalf("Reveal() = %q, want %q", s.Reveal(), value)
	}
	wrapped := struct {
		S      Secret
		P      *Secret
		L      []Secret
		M      map[string]Secret
		A      any
		hidden Secret // fmt can't call the methods of what it can't export
	}{s, &s, []Secret{s}, map[string]Secret{"k": s}, s, s}
	leaks := []string{value, "h u n t", "U+0068", "68756e", "68756E", "0x68, ", "0x68 ", "104 117", "150 165", "[1101000", "uint8=104", "aHVudGVyMg"}
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %#x %d %o %O %b %c %U %t %e %g %p %10.3s %w %!") {
		for _, v := range []any{s, &s, []Secret{s}, wrapped, fmt.Errorf("failed: %v", s)} {
			out := fmt.Sprintf(verb, v)
			for _, leak := range leaks {
				if strings.Contains(out, leak) {
					t.Errorf("%s of a %T prints %q", verb, v, out)
				}
			}
		}
	}
	out, err := json.Marshal(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range leaks {
		if strings.Contains(string(out), leak) {
			t.Errorf("JSON holds %q: %s", leak, out)
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); got != "[redacted] [redacted] [redacted] [redacted]" {
		t.Errorf("a secret prints %q", got)
	}
}

func TestActionValid(t *testing.T) {
	good := Action{Kind: Tool, Operation: Call, Resource: "x"}
	if !good.Valid() {
		t.Error("a whole action is not valid")
	}
	for name, change := range map[string]func(*Action){
		"no kind":           func(a *Action) { a.Kind = 0 },
		"unknown kind":      func(a *Action) { a.Kind = Tool + 1 },
		"no operation":      func(a *Action) { a.Operation = 0 },
		"unknown operation": func(a *Action) { a.Operation = Call + 1 },
		"no resource":       func(a *Action) { a.Resource = "" },
	} {
		a := good
		if change(&a); a.Valid() {
			t.Errorf("%s: the action is valid", name)
		}
	}
}

func TestDenied(t *testing.T) {
	d := Denied("why", "rule")
	if d.Verdict != Deny || d.Reason != "why" || d.Rule != "rule" || d.Source != Builtin {
		t.Errorf("got %+v", d)
	}
}

func TestModeNamesIsACopy(t *testing.T) {
	ModeNames()[0] = "changed"
	if ModeNames()[0] != "plan" {
		t.Error("a caller can change the names of the modes")
	}
}

// TestEventFields pins the names of C10's fields, which others read.
func TestEventFields(t *testing.T) {
	var have []string
	typ := reflect.TypeFor[Event]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		have = append(have, name)
	}
	for _, want := range []string{"id", "agentId", "resourceType", "resource", "requested", "resolved", "source", "rule", "durationMs", "timestamp", "session", "provider"} {
		if !slices.Contains(have, want) {
			t.Errorf("no field %q in the events; have %q", want, have)
		}
	}
}

// TestRootIsSmall keeps the words few: 1,000 lines, 12 files.
func TestRootIsSmall(t *testing.T) {
	lines, files := 0, 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, e fs.DirEntry, err error) error {
		if e.IsDir() && path != "." {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		lines += bytes.Count(b, []byte("\n"))
		files++
		return err
	})
	if err != nil || files == 0 || files > 12 || lines > 1000 {
		t.Errorf("%d lines in %d files, %v; want at most 1000 in 12", lines, files, err)
	}
}

// What a human says with a no is told as one quoted line.
func TestDenial(t *testing.T) {
	for why, want := range map[string]string{"": "the human said no", "use staging": `denied by the human: "use staging"`, "a\nb\x1b[2J\u202e\"": `denied by the human: "a\nb\x1b[2J\u202e\""`} {
		if got := (Answer{Why: why}).Denial(); got != want {
			t.Errorf("%q is told as %q; want %q", why, got, want)
		}
	}
}
