package session

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
)

// drawSpec makes specs with something in every field.
func drawSpec(t *rapid.T) *Spec {
	word := rapid.StringN(1, 6, 24)
	words := rapid.SliceOfN(word, 1, 3)
	bytes := rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 5), func(b []byte) string { return string(b) })
	text := word.Draw(t, "text")
	n := rapid.Int64().Draw(t, "number")
	s := &Spec{
		Flags: config.Flags{Net: &text, Memory: &n, RW: words.Draw(t, "rw"), Hosts: words.Draw(t, "hosts"), Only: rapid.Bool().Draw(t, "only")},
		Argv:  rapid.SliceOfN(bytes, 1, 4).Draw(t, "argv"), Dir: text, As: text, Given: words.Draw(t, "given"),
		PinGit: rapid.Bool().Draw(t, "pin"), Covered: rapid.Bool().Draw(t, "covered"), For: rapid.String().Draw(t, "for"), JSON: rapid.Bool().Draw(t, "json"), Quiet: rapid.Bool().Draw(t, "quiet"),
	}
	switch rapid.SampledFrom([]string{"own", "hosted", "plugin", "editor", "child"}).Draw(t, "whose") {
	case "hosted":
		s.Hosted = true
	case "plugin":
		s.Plugin = true
	case "editor":
		s.Asks = text
	case "child":
		s.Parent = &Parent{
			Session: bawn.Session{ID: text, Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Started: time.Unix(n&0xffffffff, 0).UTC(), Isolation: bawn.Isolation{Workspace: text}},
			Places:  []bawn.Mount{{Path: text, Access: bawn.ReadOnly}}, Depth: 1, Dir: text, Environ: rapid.SliceOfN(bytes, 1, 4).Draw(t, "environ"), SetEnv: Words{},
			Git: []bawn.GitDir{{Path: text, Objects: []bawn.GitObjects{{Source: text, Target: text}}}},
		}
	}
	return s
}

// TestSpecIsHandedOnWhole: what is received is what was sent, to the byte, or
// nothing was sent.
func TestSpecIsHandedOnWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Receive(bytes.NewReader(append(text, "what follows"...)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("got  %+v\nwant %+v", got, s)
		}
		cut := rapid.IntRange(0, len(text)-1).Draw(t, "cut")
		if _, err := Receive(bytes.NewReader(text[:cut])); err == nil {
			t.Fatal("half a spec is one")
		}
	})
}

// TestSpecHasEveryFlag: a flag that is added is handed on as well.
func TestSpecHasEveryFlag(t *testing.T) {
	s := &Spec{Argv: Words{"true"}}
	flags := reflect.ValueOf(&s.Flags).Elem()
	for i := range flags.NumField() {
		f := flags.Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			t.Fatalf("%s is of a kind that this test does not know", flags.Type().Field(i).Name)
		}
	}
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Receive(bytes.NewReader(text)); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v; want %+v", got, err, s)
	}
}

// TestSpecIsRefused is about what JSON would change, and what nobody sends.
func TestSpecIsRefused(t *testing.T) {
	for what, s := range map[string]*Spec{
		"a path that isn't UTF-8": {Argv: Words{"x"}, Dir: "/\xff"},
		"another that isn't":      {Argv: Words{"x"}, Parent: &Parent{Session: bawn.Session{ID: "a"}, Depth: 1, Places: []bawn.Mount{{Path: "/\xff", Access: bawn.Hidden}}}},
		"too much":                {Argv: Words{strings.Repeat("x", MaxSpec)}},
	} {
		if _, err := s.Encode(); err == nil {
			t.Errorf("%s is sent", what)
		}
	}
	above := &Parent{Session: bawn.Session{ID: "a"}, Depth: 1}
	for what, s := range map[string]*Spec{
		"no command":          {},
		"an empty command":    {Argv: Words{""}},
		"tools of nobody":     {Gateway: &Gateway{}},
		"tools and a command": {Argv: Words{"x"}, Gateway: &Gateway{}, Parent: above},
		"a parent without ID": {Argv: Words{"x"}, Parent: &Parent{Depth: 1}},
		"no depth":            {Argv: Words{"x"}, Parent: &Parent{Session: bawn.Session{ID: "a"}}},
		"a hosted child":      {Argv: Words{"x"}, Parent: above, Hosted: true},
	} {
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Receive(bytes.NewReader(text)); err == nil {
			t.Errorf("%s is received", what)
		}
	}
	if _, err := Receive(strings.NewReader("\xff\xff\xff\xff{}")); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("any length is believed: %v", err)
	}
}

// FuzzReceive: what is received can be sent again, and means the same.
func FuzzReceive(f *testing.F) {
	for _, s := range []*Spec{{Argv: Words{"ls", "\xff"}}, {Gateway: &Gateway{Servers: []string{"a"}}, Parent: &Parent{Session: bawn.Session{ID: "a"}, Depth: 1}}} {
		text, err := s.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Receive(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			return // a word of JSON's for what is no UTF-8
		}
		if _, err := Receive(bytes.NewReader(again)); err != nil {
			t.Errorf("%+v was received and can't be sent: %v", s, err)
		}
	})
}
