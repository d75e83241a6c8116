package stricttoml

import (
	"errors"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

type part struct {
	Off bool `toml:"off"`
}

// level is read from a string.
type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" {
		return errors.New(`want "high"`)
	}
	*l = 1
	return nil
}

type sample struct {
	Name   string            `toml:"name"`
	Count  *int64            `toml:"count"`
	Share  float64           `toml:"share"`
	On     bool              `toml:"on"`
	Level  level             `toml:"level"`
	Levels []level           `toml:"levels"`
	List   *[]string         `toml:"list"`
	Env    map[string]string `toml:"env"`
	Any    map[string]any    `toml:"any"`
	Own    struct {
		Name string `toml:"name,omitempty"`
	} `toml:"own"`
	Rule []struct {
		ID   string `toml:"id"`
		Deep []struct {
			X int `toml:"x"`
		} `toml:"deep"`
	} `toml:"rule"`
	Left string `toml:"-"`
	part
	Silent string
}

// TestDecode gives one mistake at a time, and wants its place, what would be right
// and no other form of a key.
func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"off = true\nname = 'x'\ncount = 3\nshare = 1.5\non = true\nlevel = 'high'\nlevels = ['high']\nlist = ['a']": "",
		"[env]\nA = 'x'\na = 'y'\n\"a b\" = ''\n[any.x]\ny = [{z = 1}]\n[own]\nname = 'x'\n":                         "",
		"[[rule]]\nid = 'x'\n[[rule.deep]]\nx = 1\n[[rule]]\ndeep = [{x = 1}, {x = 2}]\n":                            "",
		"rule = [{id = 'x', deep = [{x = 1}]}]\nown.name = 'x'\nenv = {A = 'x'}\n":                                   "",

		"x = 1":                          `f:1:1: unknown key "x"; want name, count, share, on, level, levels, list, [env], [any], [own], [[rule]], off`,
		"NAME = 'x'":                     `f:1:1: unknown key "NAME"; want name,`,
		"name = 'x'\nName = 'y'":         `f:2:1: unknown key "Name"; want name,`,
		"-  = 'x'":                       `f:1:1: unknown key "-"`,
		"Left = 'x'":                     `f:1:1: unknown key "Left"`,
		"Silent = 'x'":                   `f:1:1: unknown key "Silent"`,
		"silent = 'x'":                   `f:1:1: unknown key "silent"`,
		"\"\" = 'x'":                     `f:1:1: unknown key ""`,
		"[own]\n\nx = 1":                 `f:3:1: unknown key "x" in "[own]"; want name`,
		"own = {x = 1}":                  `f:1:8: unknown key "x" in "own"; want name`,
		"own.x = 1":                      `f:1:5: unknown key "x" in "own"; want name`,
		"[own.x]":                        `f:1:6: unknown key "x" in "[own]"; want name`,
		"[[rule]]\nid = ''\nx = 1":       `f:3:1: unknown key "x" in "[[rule]]"; want id, [[deep]]`,
		"rule = [{}, {x = 1}]":           `f:1:14: unknown key "x" in "rule"; want id, [[deep]]`,
		"rule = [{deep = [{y = 1}]}]":    `f:1:19: unknown key "y" in "deep"; want x`,
		"[[rule]]\n[[rule.deep]]\ny = 1": `f:3:1: unknown key "y" in "[[rule.deep]]"; want x`,
		"[name]\nx = 1":                  `f:2:1: unknown key "x" in "[name]"; it has no keys`,
		"[level.x]":                      `f:1:8: unknown key "x" in "[level]"; it has no keys`,
		"[env.x]\ny = 1":                 `f:2:1: unknown key "y" in "[env.x]"`,
		"\"a\\nb\" = 1":                  `f:1:1: unknown key "a\nb"; want`,

		"name = 3":                 `f:1:8: "name" has a value of another type; want a string`,
		"count = 'x'":              `f:1:9: "count" has a value of another type; want a whole number`,
		"share = 'x'":              `f:1:9: "share" has a value of another type; want a number with a point, such as 1.5`,
		"on = 1":                   `f:1:6: "on" has a value of another type; want true or false`,
		"list = 'x'":               `f:1:8: "list" has a value of another type; want a list of strings`,
		"own = 3":                  `f:1:7: "own" has a value of another type; want a table`,
		"rule = 3":                 `f:1:8: "rule" has a value of another type; want tables [[rule]]`,
		"[[rule]]\nid = 3":         `f:2:6: "rule.id" has a value of another type; want a string`,
		"level = 'low'":            `f:1:9: want "high"`,
		"levels = ['high', 'low']": `f:1:19: want "high"`,

		"name = 'x'\nname = 'y'": `f:2:1: `,
		"[own]\n[own]":           `f:2:`,
		"[[rule]\n":              `f:1:7: expected ']]' to close array table name; the format is TOML 1.0 (https://toml.io)`,
		"x":                      `f:1:1: `,
		"name = 'x":              `f:1:9: `,
		"\xef\xbb\xbfname = 'x'": `f:1:1: the file begins with a byte order mark; want plain UTF-8; save it as UTF-8 without BOM`,
		"name = 'x'\n\x00":       `f:2:1: the file has a NUL byte`,
		"name = '\xff'":          `f:1:9: the file is not UTF-8 here`,
	} {
		var v sample
		err := Decode("f", []byte(text), &v)
		var e *Error
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		case err != nil && !errors.As(err, &e):
			t.Errorf("%q: %T", text, err)
		}
	}
}

// TestLines says where each key and each table of a list stands.
func TestLines(t *testing.T) {
	d, err := Read("f", []byte("a = 1\n[own]\nname = 'x'\n [[ rule ]] # first\nid = 'x'\n[[rule.deep]]\nx = 1\n[[rule]]\nown = {b = {c = 1}}\nz = [\n{}, 1]\n"))
	if err != nil {
		t.Fatal(err)
	}
	lines := d.Lines()
	for name, want := range map[string]int{
		"a": 1, "own": 2, "own.name": 3, "rule[0]": 4, "rule[0].id": 5, "rule[1]": 8, "rule[1].own.b.c": 9, "rule[1].z[1]": 10, "rule[2]": 0,
	} {
		if lines[name] != want {
			t.Errorf("%s stands on line %d, want %d; all: %v", name, lines[name], want, lines)
		}
	}
}

// FuzzDecode: a mistake has a place in the file, and what is read has no key but
// those that the sample has, by their exact names.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"name = 'x'", "NAME = 'x'", "[[rule]]\nid = 'x'\ndeep = [{x = 1}]", "own = {name = 'x'}", "[any]\nx = {y = [1, {z = 2}]}", "\"a.b\" = 1", "x", "\xef\xbb\xbf"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v sample
		err := Decode("f", text, &v)
		if e := (*Error)(nil); errors.As(err, &e) {
			if lines := strings.Count(string(text), "\n") + 1; e.Line < 1 || e.Line > lines || e.Column < 1 || e.Problem == "" {
				t.Fatalf("%+v in %d lines", e, lines)
			}
			return
		}
		if err != nil {
			t.Fatalf("%T: %v", err, err)
		}
		var all map[string]any
		if err := toml.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		exact(t, all, "name count share on level levels list env any own rule off")
		one, _ := all["own"].(map[string]any)
		exact(t, one, "name")
		rules, _ := all["rule"].([]any)
		for _, r := range rules {
			rule := r.(map[string]any)
			exact(t, rule, "id deep")
			deep, _ := rule["deep"].([]any)
			for _, d := range deep {
				exact(t, d.(map[string]any), "x")
			}
		}
		d, err := Read("f", text)
		if err != nil {
			t.Fatal(err)
		}
		lines := d.Lines()
		for name := range all {
			if _, ok := all[name].([]any); !ok && lines[name] < 1 {
				t.Fatalf("%q has no line: %v", name, lines)
			}
		}
	})
}

func exact(t *testing.T, table map[string]any, names string) {
	for name := range table {
		if name == "" || !strings.Contains(" "+names+" ", " "+name+" ") {
			t.Fatalf("%q was read; want %s", name, names)
		}
	}
}
