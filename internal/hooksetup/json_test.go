package hooksetup

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

var twoEvents = []event{{"PreToolUse", command("/opt/bawn", "claude", true)}, {"PostToolUse", command("/opt/bawn", "claude", false)}}

func mustPut(t *testing.T, old string) string {
	t.Helper()
	text, err := shapes["claude"].put([]byte(old), "claude", twoEvents, 60)
	if err != nil {
		t.Fatalf("%v in\n%s", err, old)
	}
	return string(text)
}

func TestPutNewFile(t *testing.T) {
	got, err := shapes["claude"].put(nil, "claude", twoEvents, 60)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "hooks": {
    "PreToolUse": [
      {"hooks":[{"command":"/opt/bawn hook claude || { [ $? -eq 2 ] || echo \"bawn hook gave no answer, so this is denied\" >&2; exit 2; }","timeout":60,"type":"command"}]}
    ],
    "PostToolUse": [
      {"hooks":[{"command":"/opt/bawn hook claude","timeout":60,"type":"command"}]}
    ]
  }
}
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}

// What the user wrote keeps every byte: ours is put in, and nothing else differs.
func TestPutKeepsWhatIsThere(t *testing.T) {
	for name, tt := range map[string]struct{ old, want string }{
		"tabs, comments and a comma at the end": {
			"// mine\n{\n\t\"model\": \"x\", // why\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}, // my own\n\t\t],\n\t},\n}\n",
			"// mine\n{\n\t\"model\": \"x\", // why\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}, // my own\n\t\t\tOURS,\n\t\t],\n\t\t\"PostToolUse\": [\n\t\t\tOURS\n\t\t],\n\t},\n}\n",
		},
		"one line":                        {`{"a":1,"hooks":{"PreToolUse":[]}}`, `{"a":1,"hooks":{"PreToolUse":[OURS], "PostToolUse": [OURS]}}`},
		"empty object":                    {"{}", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      OURS\n    ],\n    \"PostToolUse\": [\n      OURS\n    ]\n  }\n}"},
		"a comment where nothing else is": {"{\n  // nothing yet\n}\n", "{\n  // nothing yet\n  \"hooks\": {\n    \"PreToolUse\": [\n      OURS\n    ],\n    \"PostToolUse\": [\n      OURS\n    ]\n  }\n}\n"},
		"a comment at the end":            {"{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  \"hooks\": {\n    \"PreToolUse\": [\n      OURS\n    ],\n    \"PostToolUse\": [\n      OURS\n    ]\n  }\n}\n"},
		"returns at line ends":            {"{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1,\r\n  \"hooks\": {\r\n    \"PreToolUse\": [\r\n      OURS\r\n    ],\r\n    \"PostToolUse\": [\r\n      OURS\r\n    ]\r\n  }\r\n}\r\n"},
	} {
		got := mustPut(t, tt.old)
		if d := cmp.Diff(tt.want, blank(t, got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if again := mustPut(t, got); again != got {
			t.Errorf("%s: the second time changes %s", name, cmp.Diff(got, again))
		}
		back, err := shapes["claude"].take([]byte(got), []byte(tt.old), "claude")
		if err != nil || meaningText(t, string(back)) != meaningText(t, tt.old) {
			t.Errorf("%s: taken out again, it is\n%s (%v)", name, back, err)
		}
	}
}

// blank writes OURS for every element of ours.
func blank(t *testing.T, text string) string {
	t.Helper()
	d, err := readDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for v := range d.root.All() {
		if s := shapes["claude"]; member(v, "hooks") != nil && len(s.handlers(v)) == 1 && s.ours(s.handlers(v)[0], "claude") {
			v.Value = hujson.Literal("OURS")
		}
	}
	return string(d.bytes())
}

func meaningText(t *testing.T, text string) string {
	t.Helper()
	d, err := readDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.meaning()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func TestPutReplacesAnOlderOne(t *testing.T) {
	old := `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"mine"},{"type":"command","command":"'/old place/bawn' hook claude","timeout":5}]}],"Stop":[{"hooks":[{"command":"/x/bawn hook claude"}]}]}}`
	got := mustPut(t, old)
	if strings.Contains(got, "old place") || strings.Contains(got, "Stop") || strings.Count(got, "/opt/bawn hook claude") != 2 || !strings.Contains(got, `{"type":"command","command":"mine"}`) {
		t.Errorf("%s", got)
	}
}

func TestPutRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"hooks": []}`:                         "is not what agents read",
		`{"hooks": {"PreToolUse": "x"}}`:        "is not what agents read",
		`{"hooks": {}, "hooks": {}}`:            "stands twice",
		`{"a": 1`:                               "line 1",
		`[]`:                                    "want a JSON object",
		`nonsense`:                              "line 1",
		strings.Repeat(`{"a":`, 2000):           "nested",
		`{"a": 1} {"hooks": 1}`:                 "after top-level",
		"\xef\xbb\xbf{}":                        "line 1",
		"{\"hooks\": {\"PreToolUse\": [\x00]}}": "invalid",
	} {
		if got, err := shapes["claude"].put([]byte(text), "claude", twoEvents, 60); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v; want %q\n%s", text, err, want, got)
		}
	}
}

// Of whatever document: what is not ours means the same, ours is there once, a
// second time changes nothing, and taken out again nothing of ours is left.
func TestPutAndTakeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := documents(t)
		s := shapes["claude"]
		put, err := s.put([]byte(old), "claude", twoEvents, 60)
		if err != nil {
			t.Fatalf("%v in %q", err, old)
		}
		again, err := s.put(put, "claude", twoEvents, 60)
		if err != nil || string(again) != string(put) {
			t.Fatalf("again: %v\n%s\n%s", err, put, again)
		}
		taken, err := s.take(put, []byte(old), "claude")
		if err != nil || strings.Contains(string(taken), "hook claude") {
			t.Fatalf("%v\n%s", err, taken)
		}
		want, _ := s.others([]byte(old), "claude")
		got, err := s.others(taken, "claude")
		if err != nil || !same(want, got) {
			t.Fatalf("%v: %s", err, cmp.Diff(want, got))
		}
		for _, comment := range []string{"/* c1 */", "// c2"} {
			if strings.Count(string(taken), comment) != strings.Count(old, comment) {
				t.Fatalf("a comment is lost:\n%s\n%s", old, taken)
			}
		}
	})
}

func documents(t *rapid.T) string {
	space := rapid.SampledFrom([]string{"", " ", "\n", "\n\t", "\r\n  ", " /* c1 */ ", " // c2\n"})
	handler := rapid.SampledFrom([]string{`{"type":"command","command":"lint"}`, `{"command":7}`, `null`, `"s"`, `{"type":"prompt"}`})
	draw := func(g *rapid.Generator[string]) string { return g.Draw(t, "part") }
	list := func(open, end string, part func() string) string {
		var b strings.Builder
		b.WriteString(open + draw(space))
		n := rapid.IntRange(0, 3).Draw(t, "parts")
		for i := range n {
			b.WriteString(part() + draw(space))
			if i < n-1 || rapid.Bool().Draw(t, "comma") {
				b.WriteString("," + draw(space))
			}
		}
		return b.String() + end
	}
	group := func() string {
		if rapid.Bool().Draw(t, "odd") {
			return draw(handler)
		}
		return `{"matcher":"Bash",` + draw(space) + `"hooks":` + list("[", "]", func() string { return draw(handler) }) + draw(space) + "}"
	}
	names := []string{"PreToolUse", "PostToolUse", "Stop"}
	events := func() string {
		return list("{", "}", func() string {
			names = append(names[1:], "E"+names[0])
			return `"` + names[len(names)-2] + `":` + draw(space) + list("[", "]", group)
		})
	}
	return draw(space) + `{"n":1.50,` + draw(space) + `"hooks":` + draw(space) + events() + draw(space) + `,"z":"é"` + draw(space) + "}" + draw(space)
}

func FuzzPut(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"hooks":{}}`, "{// c\n}", `{"hooks":{"PreToolUse":[{"hooks":[{"command":"/b/bawn hook claude"},],},],},}`, `{"a":[[[{}]]]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		s := shapes["claude"]
		put, err := s.put(old, "claude", twoEvents, 60)
		if err != nil {
			return
		}
		again, err := s.put(put, "claude", twoEvents, 60)
		if err != nil || string(again) != string(put) {
			t.Fatalf("%v: %q became %q, then %q", err, old, put, again)
		}
		if taken, err := s.take(put, old, "claude"); err != nil || strings.Contains(string(taken), "/opt/bawn hook claude") {
			t.Fatalf("%v: %q", err, taken)
		}
	})
}

// TestNoSandbox: the line says where commands run, one takes the other's place, and
// both are Bawn's own to whoever takes them out.
func TestNoSandbox(t *testing.T) {
	var events []event
	for _, e := range twoEvents {
		events = append(events, event{e.name, command("/opt/bawn", "claude", e.name == "PreToolUse", Setup{Stay: true}.flags()...)})
	}
	first := mustPut(t, "{}")
	staying, err := shapes["claude"].put([]byte(first), "claude", events, 60)
	if err != nil || strings.Count(string(staying), "bawn hook claude --no-sandbox") != 2 || strings.Count(string(staying), "bawn hook claude") != 2 {
		t.Errorf("%v\n%s", err, staying)
	}
	if back := mustPut(t, string(staying)); back != first {
		t.Errorf("got\n%s\nwant\n%s", back, first)
	}
	left, err := shapes["claude"].take(staying, []byte("{}"), "claude")
	if err != nil || strings.Contains(string(left), "bawn") {
		t.Errorf("%v\n%s", err, left)
	}
	for name, text := range map[string]text{"opencode": plugin, "pi": extension, "cline": script} {
		with, err := text.is("/opt/bawn", name, Setup{Stay: true}.flags()...)
		without, other := text.is("/opt/bawn", name)
		if err != nil || other != nil || !strings.Contains(string(with), "--no-sandbox") || strings.Contains(string(without), "sandbox") || strings.Contains(string(without), "@FLAGS@") {
			t.Errorf("%s: %v %v\n%s", name, err, other, with)
		}
	}
}
