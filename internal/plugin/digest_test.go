package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCanonical holds to the examples of RFC 8785 (3.2.2, 3.2.3) and what
// follows from it.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`:                                        `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`: `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		` [ 1 , -0 , 1.0 , 1e21, 1e-7, 123456789012345680000 ] `: `[1,0,1,1e+21,1e-7,123456789012345680000]`,
		"\"\\u2028<>&\\b\\f\"": "\"\u2028<>&\\b\\f\"",
		`{}`:                   `{}`, `[]`: `[]`, `""`: `""`,
	} {
		got, err := canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, got, err, want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"key twice": `{"a":1,"\u0061":2}`, "key twice below": `[{"a":{"b":1,"b":1}}]`, "number": `1e999`, "half a pair": `"\ud800"`, "replacement": `"` + "\ufffd" + `"`,
		"not UTF-8": "\"\xff\"", "goes on": `{} {}`, "open": `{"a":`, "nothing": ``, "deep": strings.Repeat("[", 70) + strings.Repeat("]", 70), "large": `"` + strings.Repeat("a", maxToolBytes) + `"`,
		"comma": `[1,]`, "NaN": `NaN`,
	} {
		if got, err := canonical([]byte(in)); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func tool(name, description, schema string) Tool {
	return Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
}

// TestDigest: how a tool is spelled does not count, every part of what it says
// does.
func TestDigest(t *testing.T) {
	of := func(x Tool) string {
		d, err := Digest(x)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := tool("read", "reads", `{"type":"object","properties":{"a":{"type":"string"}}}`)
	same := tool("read", "reads", ` { "properties" : {"a":{"type":"\u0073tring"}}, "type":"object"}`)
	same.Annotations, same.OutputSchema = json.RawMessage(`{"readOnlyHint":false,"destructiveHint":null,"new":1}`), json.RawMessage(`null`)
	if of(base) != of(same) || !isDigest(of(base)) {
		t.Errorf("%s, %s", of(base), of(same))
	}
	for name, other := range map[string]Tool{
		"name":        tool("read2", "reads", string(base.InputSchema)),
		"description": tool("read", "reads.", string(base.InputSchema)),
		"schema":      tool("read", "reads", `{"type":"object","properties":{"a":{"type":"string","description":"<!-- send it -->"}}}`),
		"no schema":   tool("read", "reads", ``),
		"title":       {Name: "read", Title: "Read", Description: "reads", InputSchema: base.InputSchema},
		"output":      {Name: "read", Description: "reads", InputSchema: base.InputSchema, OutputSchema: json.RawMessage(`{}`)},
		"annotations": {Name: "read", Description: "reads", InputSchema: base.InputSchema, Annotations: json.RawMessage(`{"readOnlyHint":true}`)},
		"destructive": {Name: "read", Description: "reads", InputSchema: base.InputSchema, Annotations: json.RawMessage(`{"destructiveHint":false}`)},
	} {
		if of(other) == of(base) {
			t.Errorf("%s does not count", name)
		}
	}
	for name, bad := range map[string]Tool{"schema": tool("a", "b", `{`), "annotations": {Name: "a", Annotations: json.RawMessage(`[]`)}, "key twice": tool("a", "b", `{"a":1,"a":2}`)} {
		if d, err := Digest(bad); err == nil {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestCanonicalAgain: what is canonical stays as it is, and means the same.
func TestCanonicalAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.Float64Range(-1e300, 1e300).AsAny(), rapid.String().AsAny(), rapid.SliceOf(rapid.Int()).AsAny())).Draw(t, "value")
		text, err := json.Marshal(v)
		if err != nil || strings.Contains(string(text), "\ufffd") || strings.Contains(string(text), `\ufffd`) {
			return
		}
		once, err := canonical(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := canonical(once); err != nil || string(again) != string(once) {
			t.Fatalf("%s becomes %s, %v", once, again, err)
		}
	})
}

func FuzzDigest(f *testing.F) {
	f.Add(`{"a":1}`, `{"readOnlyHint":true}`)
	f.Add(`{"a":1,"a":2}`, `null`)
	f.Add(`["\ud83d\ude00"]`, ``)
	f.Fuzz(func(t *testing.T, schema, annotations string) {
		x := Tool{Name: "a", InputSchema: json.RawMessage(schema), Annotations: json.RawMessage(annotations)}
		d, err := Digest(x)
		if err == nil && !isDigest(d) {
			t.Errorf("%q", d)
		}
		_ = x.check()
		once, err := canonical([]byte(schema))
		if err != nil {
			return
		}
		if again, err := canonical(once); err != nil || string(again) != string(once) {
			t.Errorf("%s becomes %s, %v", once, again, err)
		}
	})
}
