package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/redact"
)

// TestMeter has a server speak at its measure, above it at times, and without
// an end.
func TestMeter(t *testing.T) {
	now := time.Unix(0, 0)
	speak := func(perSecond, seconds int) error {
		m := newMeter(strings.NewReader(strings.Repeat("{\n", perSecond*seconds)), Limits{Messages: 100, Patience: 2 * time.Second}, func() time.Time { return now })
		m.sleep = func(d time.Duration) { now = now.Add(d / 10) } // a reader that is in a hurry
		part := make([]byte, 2)
		for {
			if _, err := io.ReadFull(m, part); err != nil {
				return err
			}
			now = now.Add(time.Second / time.Duration(perSecond))
		}
	}
	if err := speak(90, 20); !errors.Is(err, io.EOF) {
		t.Errorf("at its measure: %v", err)
	}
	if err := speak(250, 1); !errors.Is(err, io.EOF) {
		t.Errorf("much, for a second: %v", err)
	}
	if err := speak(10_000, 10); !errors.Is(err, errFlood) {
		t.Errorf("without an end: %v", err)
	}
	m := newMeter(strings.NewReader("{}\n [{}]\n"), Limits{Messages: 10, Patience: time.Second}, time.Now)
	if _, err := io.ReadAll(m); !errors.Is(err, errBatch) {
		t.Errorf("a batch: %v", err)
	}
}

// TestBlanksThatAreNone has something stand before a batch, and before a
// message, that some readers skip: only JSON's blanks are.
func TestBlanksThatAreNone(t *testing.T) {
	const one = `{"jsonrpc":"2.0","method":"x"}`
	read := func(line string) (n int, err error) {
		m := newMeter(strings.NewReader(line+"\n"), Limits{Messages: 10, Patience: time.Second}, time.Now)
		l := newLines(io.NopCloser(m), &sink{}, 1000)
		for {
			if _, err := l.Read(t.Context()); err != nil {
				return n, err
			}
			n++
		}
	}
	for _, blank := range []string{"", " ", "\t", "\r", " \t\r\n \r\n"} {
		if n, err := read(blank + one + blank); n != 1 || !errors.Is(err, io.EOF) {
			t.Errorf("control: a message after %q: %d, %v", blank, n, err)
		}
		if n, err := read(blank + "[" + one + "," + one + "]"); n != 0 || !errors.Is(err, errBatch) {
			t.Errorf("control: a batch after %q: %d, %v", blank, n, err)
		}
	}
	others := []string{"\ufeff", "\u200b", "\x00", "\x1b", "\xa0", "\x85", "x", "]", ","}
	for r := range unicode.MaxRune {
		if unicode.IsSpace(r) && !strings.ContainsRune(blanks, r) {
			others = append(others, string(r))
		}
	}
	if len(others) < 9+21 {
		t.Errorf("%d are tried", len(others))
	}
	for _, other := range others {
		for _, line := range []string{other + "[" + one + "," + one + "]", " " + other + one, one + "\n" + other + one} {
			if n, err := read(line); n > strings.Count(line, "\n") || !errors.Is(err, errBegin) {
				t.Errorf("%q: %d messages, %v", line, n, err)
			}
		}
		l, _ := linesOf(other+"["+one+","+one+"]\n", 1000) // a client's are not metered
		if m, err := l.Read(t.Context()); err == nil {
			t.Errorf("after %q a client's batch is read: %v", other, m)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "A", "a_b", "a__b", "-a", "a-", "a--b", "a.b", "ä", strings.Repeat("a", 33), "a/b", "a b"} {
		if CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
		if _, err := New(Options{Servers: []Server{{Name: name, Start: program("new")}}}); err == nil {
			t.Errorf("a server %q is taken", name)
		}
	}
	if _, err := New(Options{Servers: []Server{{Name: Own, Start: program("new")}}}); err == nil {
		t.Error("a server has the gateway's own name")
	}
	if _, err := New(Options{Servers: []Server{{Name: "a", Start: program("new")}, {Name: "a", Start: program("new")}}}); err == nil {
		t.Error("two servers have one name")
	}
	seen := map[string]string{}
	for _, tool := range []string{"read", "read_", "read.file", "read/file", "read_file", "read__file", strings.Repeat("a", 64), strings.Repeat("a", 63) + "b"} {
		name := frontName("files", tool)
		if len(name) > maxFront || seen[name] != "" || strings.Count(name, between) < 1 {
			t.Errorf("%q is %q, as is %q", tool, name, seen[name])
		}
		seen[name] = tool
	}
}

// FuzzNames shows that no two tools of two servers share a name that clients
// see, and that what they see is plain.
func FuzzNames(f *testing.F) {
	f.Add("a", "b__c", "a-b", "c")
	f.Add("files", "read.x", "files", "read/x")
	f.Add("a", strings.Repeat("x", 200), "a", strings.Repeat("x", 201))
	f.Add("a", "b.c", "a", strings.TrimPrefix(frontName("a", "b.c"), "a__"))
	f.Add("a", "b_0123abcd", "a-b", "_0123abcd")
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2 string) {
		if CheckName(s1) != nil || CheckName(s2) != nil || s1 == s2 && t1 == t2 {
			return
		}
		a, b := frontName(s1, t1), frontName(s2, t2)
		if a == b {
			t.Errorf("%q of %q and %q of %q are both %q", t1, s1, t2, s2, a)
		}
		if server, _, _ := strings.Cut(a, between); server != s1 || len(a) > maxFront || strings.Map(modest, a) != a {
			t.Errorf("%q of %q is %q", t1, s1, a)
		}
		if resource, ok := hook.AtGateway("mcp__" + Own + between + a); ok != (t1 != "") && !ok || ok && !strings.HasPrefix(resource, s1+"/") {
			t.Errorf("%q of %q is the resource %q to hooks", t1, s1, resource)
		}
		if server, uri, ok := backURI(frontURI(s1, t1)); t1 != "" && (!ok || server != s1 || uri != t1) {
			t.Errorf("the resource %q of %q is %q of %q", t1, s1, uri, server)
		}
	})
}

// FuzzArguments shows that every reader understands the same arguments as the
// judge.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"path":"/a"}`, `{"path":"/a","path":"/b"}`, `{"a":{"b":1,"b":2}}`, `[]`, `{"a":1e999}`, `{"a":"\ud800"}`, `{} {}`, `{"a":[{"b":1},{"b":1}]}`, "{\"a\":\"\xff\"}", `{"a":12345678901234567890}`} {
		f.Add([]byte(seed))
	}
	b := newBackend(&Gateway{opts: Options{Now: time.Now}}, Server{Name: "a", Means: func(string) map[string]string {
		return map[string]string{ArgumentPath: ArgumentPath, ArgumentHost: ArgumentHost, ArgumentCommand: ArgumentCommand}
	}})
	f.Add([]byte(`{"PATH":"/a"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		args, err := arguments(text)
		if err != nil {
			return
		}
		shown := shownArgs(args)
		again, err := arguments([]byte(shown))
		if len(shown) < maxShown && (err != nil || shownArgs(again) != shown) {
			t.Errorf("%q is handed on as %q and read as %v (%v)", text, shown, again, err)
		}
		list, err := b.meaning(&tool{name: "x"}, args)
		for _, m := range list {
			if err == nil && !m.action.Valid() {
				t.Errorf("%q means %+v", text, m.action)
			}
		}
		var read struct{ Path, Host, Command any } // as a server of Go's reads it
		_ = json.Unmarshal([]byte(printed(args)), &read)
		if s, ok := read.Path.(string); ok && err == nil && !slices.ContainsFunc(list, func(m meant) bool { return m.action.Kind == bawn.Filesystem && strings.HasSuffix(s, m.action.Resource) }) && !strings.HasPrefix(strings.ToLower(s), "file:") {
			t.Errorf("%q is read as the path %q, of which nothing is judged", text, s)
		}
	})
}

// FuzzResult shows that no invisible, oversized or Bawn-like text of a server reaches the
// client.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a\u202e"}],"_meta":{"bawn.dev/denied":1}}`))
	f.Add([]byte(`{"content":[{"type":"image","data":"AAAA","mimeType":"x"},{"type":"resource","resource":{"uri":"x:y","text":"z"}}],"structuredContent":{"a\u0007":["\u001b"]}}`))
	f.Add([]byte(`{"content":[{"type":"resource_link","uri":"x:y","name":"z"},{"type":"audio","data":"AAAA","mimeType":"x"}],"isError":true}`))
	b := newBackend(&Gateway{opts: Options{Now: time.Now}}, Server{Name: "a", Limits: Limits{Result: 2000}})
	f.Fuzz(func(t *testing.T, text []byte) {
		var r mcp.CallToolResult
		if json.Unmarshal(text, &r) != nil {
			return
		}
		out := b.marked(&r)
		if out.Meta[Untrusted] != "a" || len(out.Meta) != 1 {
			t.Errorf("meta %v", out.Meta)
		}
		if got := textOf(out); strings.ContainsFunc(got, hidden) || !utf8.ValidString(got) || len(got) > 2000*len(`\U000e0041`)+200*(1+len(r.Content)) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if _, err := json.Marshal(out); err != nil {
			t.Error(err)
		}
	})
}

// FuzzSchema shows that a schema that is offered has nothing hidden.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"description":"x\u202e"}}}`))
	f.Add([]byte(`{"a\u200b":1}`))
	f.Add([]byte(`[[[[["\u001b"]]]]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if json.Unmarshal(text, &v) != nil {
			return
		}
		clean, err := schema(v)
		if err != nil {
			return
		}
		walk(clean, func(s string) {
			if strings.ContainsFunc(s, hidden) {
				t.Errorf("%q is offered", s)
			}
		})
	})
}

func walk(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, x := range v {
			walk(x, f)
		}
	case map[string]any:
		for k, x := range v {
			f(k)
			walk(x, f)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.org", "example.org:22", "https://u:p@example.org/x", "[::1]:80", "::1", "a b", "http://[::1]/", "x@y", "//evil"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, err := hostOf(s)
		if err == nil && (!strings.Contains(host, ":") || strings.ContainsAny(host, "/@ ")) {
			t.Errorf("%q is the host %q", s, host)
		}
	})
}

func TestDenialsCanBeActedOn(t *testing.T) {
	for _, rule := range []string{"", RuleGateway, "builtin:not-approved", "builtin:not-recorded", "policy.toml:3"} {
		text := denial(bawn.Decision{Reason: "because", Rule: rule}, "a/b")
		if !strings.Contains(text, "Bawn") || !strings.Contains(text, "because") || !strings.Contains(text, "a/b") || redact.Visible(text) != text {
			t.Errorf("%q: %q", rule, text)
		}
	}
	if got := executable(bawn.Decision{Canonical: "ls -l", Env: []string{"A=it's"}}, "ls  -l"); got != "export A='it'\\''s'\nls -l" {
		t.Errorf("got %q", got)
	}
}
