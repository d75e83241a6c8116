package policycli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/verb"
)

// FuzzParseAction: what is accepted is JSON, and encoding/json reads the same
// in it.
func FuzzParseAction(f *testing.F) {
	for _, s := range []string{
		`{"kind":"command","command":"git push","cwd":"/w","mode":"normal","contained":true}`,
		`{"kind":"command","args":["ls","-l"],"id":{"a":[1,"}"]}}`, `{"argv":[],"dir":null,"id":null}`, `{"command":"\u00e9\ud83d\ude00\n\/\ufffd"}`,
		`{"command":"\ud800x"}`, `{"command":"\ud83d\u0041"}`, `{"command":"\`, `{"id":[}`, `{"id":1e5 }`, "{\"command\":\"\xff\"}", `{"a":1}`, ` { } `, `{}{}`, `{"id":"\"","kind":"tool"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a actionLine
		if parseAction(data, &a) != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q is accepted: %v", data, err)
		}
		for key, v := range want {
			i := keyIndex(key)
			if i < 0 {
				t.Fatalf("%q: the key %q is accepted", data, key)
			}
			if text, truth := a.field(actionKeys[i]); v != nil && (text != nil && *text != v || truth != nil && *truth != v) {
				t.Fatalf("%q: %s is %v", data, key, v)
			}
		}
		list, _ := want["args"].([]any)
		if other, ok := want["argv"].([]any); ok {
			list = other
		}
		for i, v := range list {
			if a.Args[i] != v {
				t.Fatalf("%q: args are %q", data, a.Args)
			}
		}
	})
}

// TestParseAction reads every key.
func TestParseAction(t *testing.T) {
	var a actionLine
	const text = `{"id":[1],"kind":"k","operation":"o","command":"c","args":["a","b"],"path":"p","host":"h","url":"u","tool":"t","resource":"r",` +
		`"cwd":"w","workspace":"ws","home":"ho","system":"s","mode":"m","autonomy":"au","contained":true,"untrusted":true,"private":true,"session":"se","agent":"ag"}`
	if err := parseAction([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	want := actionLine{
		situation: situation{Cwd: "w", Workspace: "ws", Home: "ho", System: "s", Mode: "m", Autonomy: "au", Contained: true, Untrusted: true, Private: true},
		ID:        json.RawMessage("[1]"), Kind: "k", Operation: "o", Command: "c", Args: []string{"a", "b"}, Path: "p", Host: "h", URL: "u", Tool: "t", Resource: "r", Session: "se", Agent: "ag",
	}
	if d := cmp.Diff(want, a, cmp.AllowUnexported(actionLine{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// emptyHome is where somebody has a home and has written nothing.
func emptyHome(tb testing.TB) *launch.Env {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return &launch.Env{World: verb.World{Environ: []string{"HOME=" + dir}, Dir: dir, Stdout: os.Stdout}}
}

// corpusActions are the labelled lines as actions.
func corpusActions(tb testing.TB, dir string) []byte {
	tb.Helper()
	decode := strings.NewReplacer("␤", "\n", "␍", "\r", "␉", "\t", "␀", "\x00", "␛", "\x1b", "␈", "\b")
	var out bytes.Buffer
	for _, name := range []string{"benign.tsv", "dangerous.tsv"} {
		data, err := os.ReadFile("../policy/testdata/corpus/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			command, _, ok := strings.Cut(line, "\t")
			if !ok || command == "command" || line[0] == '#' {
				continue
			}
			if err := verb.JSONLines(&out).Encode(map[string]any{"kind": "command", "operation": "exec", "command": decode.Replace(command), "cwd": dir, "mode": "normal", "contained": true}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return out.Bytes()
}

// BenchmarkDecideStream decides the corpus; lines/s is what counts.
func BenchmarkDecideStream(b *testing.B) {
	e := emptyHome(b)
	in := corpusActions(b, e.Dir)
	lines := bytes.Count(in, []byte("\n"))
	d, err := newDecider(e, situation{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.stream(bytes.NewReader(in), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
}

// TestStreamAnswersEachLine: as many decisions as actions, in their order.
func TestStreamAnswersEachLine(t *testing.T) {
	e := emptyHome(t)
	in := corpusActions(t, e.Dir)
	d, err := newDecider(e, situation{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.stream(bytes.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(out.Bytes(), []byte("\n")), bytes.Count(in, []byte("\n")); got != want || want < 2000 {
		t.Errorf("%d decisions on %d actions", got, want)
	}
}
