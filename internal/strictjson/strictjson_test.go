package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

type sample struct {
	Name string            `json:"name"`
	List []sample          `json:"list"`
	Map  map[string]string `json:"map"`
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"x","list":[{"name":"y"},{"name":"y"}],"map":{"a":"b","A":"c"}}`: "",
		` {"name":"x"} ` + "\n":                  "",
		`null`:                                   "",
		``:                                       "unexpected EOF",
		`{"name":"x"`:                            "EOF",
		`{"name":"x"}}`:                          "invalid character",
		`{"name":"x"} {}`:                        "follows its end",
		`{"name":"x"} x`:                         "invalid character",
		`{"name":"x","name":"y"}`:                `"name" is there twice`,
		`{"name":"x","\u006eame":"y"}`:           `"name" is there twice`,
		`{"list":[{"map":{"a":"","a":""}}]}`:     `"a" is there twice`,
		`{"other":1}`:                            "unknown field",
		`{"Name":"x"}`:                           `unknown field "Name"; want "name"`,
		`{"name":"x","NAME":"y"}`:                `unknown field "NAME"; want "name"`,
		`{"list":[{"map":{}},{"li\u017ft":[]}]}`: `unknown field`,
		`{"map":{"a":"","A":""}}`:                "",
		`{"list":[{"other":1}]}`:                 "unknown field",
		`{"name":1}`:                             "cannot unmarshal",
		"{\"name\":\"\xff\"}":                    "not UTF-8",
		`{"name":"name","list":[]}`:              "",
		`{"map":{"name":"name"},"name":"a"}`:     "",
		`[]`:                                     "cannot unmarshal",
		`{"list":[[]]}`:                          "cannot unmarshal",
		`{"map":{"x":"` + "\xc3\x28" + `"}}`:     "not UTF-8",
		strings.Repeat("[", 20_000):              "",
		`{"name":"x","list":null,"map":null}`:    "",
	} {
		var v sample
		err := Decode([]byte(text), &v)
		var at *Error
		switch {
		case strings.HasPrefix(text, "[["):
			if err == nil {
				t.Error("a value without an end is read")
			}
		case (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%.60q: %v, want %q", text, err, want)
		case err != nil && !errors.As(err, &at):
			t.Errorf("%.60q: %T", text, err)
		}
	}
}

// The offset leads to the line of a file.
func TestOffset(t *testing.T) {
	text := "{\n\"name\": \"x\",\n\"other\": 1\n}"
	var v sample
	var at *Error
	if err := Decode([]byte(text), &v); !errors.As(err, &at) || strings.Count(text[:at.Offset], "\n") != 2 {
		t.Errorf("%v at %+v", err, at)
	}
}

// What Decode takes, encoding/json takes for the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"x","list":[{"map":{"a":"b"}}]}`))
	f.Add([]byte(`{"name":"x","name":"y"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b any
		if Decode(data, &a) != nil {
			return
		}
		if err := json.Unmarshal(data, &b); err != nil {
			t.Errorf("taken, and encoding/json says %v", err)
		}
	})
}
