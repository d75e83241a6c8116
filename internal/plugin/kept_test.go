package plugin

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKept gives back what was pinned, and nothing that somebody has changed.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	tools := []Tool{
		{Name: "work", Description: "does the work", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "w0rk", Description: "looks like it"},
		{Name: "rest", Annotations: json.RawMessage(`{"readOnlyHint":true}`)},
	}
	pins := Pinned("calc", "", tools)
	if got, err := pins.Kept(dir); got != nil || err != nil {
		t.Fatalf("without a file: %v, %v", got, err)
	}
	if err := pins.Keep(dir, tools); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "calc.tools")
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	names := func() (out []string) {
		got, err := pins.Kept(dir)
		if err != nil && got != nil {
			t.Errorf("%v beside %v", got, err)
		}
		if err != nil {
			return []string{"refused"}
		}
		for _, tool := range got {
			out = append(out, tool.Name)
		}
		return out
	}
	want := []string{"rest"} // of two that look alike none is pinned unseen
	if pins.digestsOf("work") {
		want = []string{"work", "rest"}
	}
	if d := cmp.Diff(want, names()); d != "" {
		t.Fatalf("control: %s", d)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string][]byte{
		"another hint":         bytes.Replace(text, []byte("true"), []byte("false"), 1),
		"another name":         bytes.Replace(text, []byte(`"rest"`), []byte(`"pest"`), 1),
		"a member twice":       bytes.Replace(text, []byte(`"name":"rest"`), []byte(`"name":"x","name":"rest"`), 1),
		"a member in capitals": bytes.Replace(text, []byte(`"name":"rest"`), []byte(`"name":"rest","DESCRIPTION":"evil"`), 1),
		"a tool more":          append(bytes.TrimSuffix(text, []byte("]")), []byte(`,{"name":"more","title":"","description":"","inputSchema":null,"outputSchema":null,"annotations":null}]`)...),
		"none":                 []byte("[]"), "nothing": nil, "two lists": append(bytes.Clone(text), text...),
	} {
		if bytes.Equal(c, text) {
			t.Fatalf("%s: nothing was changed in %s", what, text)
		}
		if err := os.WriteFile(file, c, 0o600); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"refused"}, names()); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	if err := RemovePins(dir, "calc"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it is still there")
	}
}

// digestsOf reports whether a tool is pinned.
func (p Pins) digestsOf(tool string) bool { _, ok := p.digest(tool); return ok }

// FuzzKept shows that what is read back is what the pins say, whatever stands in
// the file.
func FuzzKept(f *testing.F) {
	good := []Tool{{Name: "work", Description: "does the work"}}
	text, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`[{"name":"work","Description":"does the work"}]`))
	f.Add([]byte(`[{"name":"work","description":"does the work"},{"name":"work","description":"x"}]`))
	pins := Pinned("calc", "", good)
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "calc.tools"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := pins.Kept(dir)
		if err != nil {
			return
		}
		if len(got) != 1 || got[0].Name != "work" || got[0].Description != "does the work" {
			t.Errorf("%q is read as %+v", text, got)
		}
	})
}
