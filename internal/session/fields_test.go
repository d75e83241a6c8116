package session

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// fields calls f with every field of a struct, down to fields that are not structs.
func fields(v reflect.Value, name string, f func(name string, v reflect.Value)) {
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]() {
		f(strings.TrimPrefix(name, "."), v)
		return
	}
	for i := range v.NumField() {
		fields(v.Field(i), name+"."+v.Type().Field(i).Name, f)
	}
}

// notOfTheLattice say who a session is, and give it nothing.
var notOfTheLattice = []string{"ID", "Parent", "Agent", "Started", "Isolation.Profile"}

// TestEveryFieldIsDrawn: the properties of the meet hold for what is drawn, so
// that a new field of a session has to be drawn.
func TestEveryFieldIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	g := rapid.Custom(func(t *rapid.T) bawn.Session { return drawSession(t, "a") })
	for i := range 300 {
		fields(reflect.ValueOf(g.Example(i)), "", func(name string, v reflect.Value) { drawn[name] = drawn[name] || !v.IsZero() })
	}
	for name, is := range drawn {
		if !is && !slices.Contains(notOfTheLattice, name) {
			t.Errorf("%s is never drawn: no property of the meet is known of it", name)
		}
	}
}

// full is a session none of whose fields is zero.
func full(t *testing.T) bawn.Session {
	var s bawn.Session
	fields(reflect.ValueOf(&s).Elem(), "", func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Uint8:
			v.SetUint(1)
		case reflect.Int64:
			v.SetInt(int64(time.Second))
		case reflect.Float64:
			v.SetFloat(1.5)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			if v.Type().Elem().Kind() == reflect.String {
				v.Index(0).SetString("y")
			} else {
				v.Index(0).Set(reflect.ValueOf(bawn.Mount{Path: "/p", Access: bawn.Private, Why: "w"}))
			}
		case reflect.Struct:
			v.Set(reflect.ValueOf(time.Unix(1, 2).UTC()))
		default:
			t.Fatalf("%s is a %v: say how it is handed to a child", name, v.Kind())
		}
	})
	return s
}

// TestSessionInJSON: a parent's session reaches its child's bawn unchanged, and an
// unknown field is an error.
func TestSessionInJSON(t *testing.T) {
	want := full(t)
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got bawn.Session
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, in := range []string{"Egress", "Resources"} {
		changed := strings.Replace(string(text), `"`+in+`":{`, `"`+in+`":{"nonesuch":1,`, 1)
		if err := json.Unmarshal([]byte(changed), &got); err == nil || changed == string(text) {
			t.Errorf("an unknown field of %s is read", in)
		}
	}
}

// TestAllIsInherited: a child that asks for all gets each field of its parent, so
// that none is forgotten by the meet.
func TestAllIsInherited(t *testing.T) {
	p := parent()
	p.Isolation.Egress.SSHAgent, p.Isolation.Egress.Only = true, true
	p.Isolation.Protect, p.Isolation.DockerAPI, p.Isolation.Devices = true, true, []string{"kvm"}
	asked := copyOf(p)
	asked.ID = "child"
	got, _, err := Meet(p, asked)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	fields(reflect.ValueOf(got), "", func(name string, v reflect.Value) { have[name] = !v.IsZero() })
	fields(reflect.ValueOf(p), "", func(name string, v reflect.Value) {
		if !v.IsZero() && !have[name] && name != "Started" {
			t.Errorf("%s is lost", name)
		}
	})
}

// TestTheAgentIsOfTheParent: a session with the host's own network has no right
// to the human's ssh-agent, and gives none.
func TestTheAgentIsOfTheParent(t *testing.T) {
	a, b := parent(), parent()
	a.ID, a.Isolation.Network = "full", bawn.NetworkFull
	b.Isolation.Egress.SSHAgent = true
	if got, _, err := Meet(a, b); err != nil || got.Isolation.Egress.SSHAgent {
		t.Errorf("%+v, %v", got.Isolation.Egress, err)
	}
	a = parent()
	a.ID = "without"
	if got, _, err := Meet(a, b); err != nil || got.Isolation.Egress.SSHAgent {
		t.Errorf("%+v, %v", got.Isolation.Egress, err)
	}
}

func TestExceeds(t *testing.T) {
	m := func(p string, a bawn.Access) bawn.Mount { return bawn.Mount{Path: p, Access: a} }
	parent := []bawn.Mount{m("/", bawn.ReadOnly), m("/w", bawn.ReadWrite), m("/w/.git/hooks", bawn.ReadOnly), m("/h/.ssh", bawn.Hidden), m("/tmp", bawn.Private)}
	with := func(list ...bawn.Mount) []bawn.Mount { return append(slices.Clone(parent), list...) }
	for what, tt := range map[string]struct {
		child []bawn.Mount
		want  []string
	}{
		"the same":                 {parent, nil},
		"nothing":                  {nil, nil},
		"less":                     {with(m("/w", bawn.ReadOnly), m("/etc", bawn.Hidden)), nil},
		"another place":            {with(m("/v", bawn.ReadWrite)), []string{"/v"}},
		"what is hidden":           {with(m("/h/.ssh", bawn.ReadOnly)), []string{"/h/.ssh"}},
		"below what is hidden":     {with(m("/h/.ssh/id", bawn.ReadOnly)), []string{"/h/.ssh/id"}},
		"above it, and not hidden": {[]bawn.Mount{m("/", bawn.ReadOnly)}, []string{"/h/.ssh", "/tmp"}},
		"what is protected":        {[]bawn.Mount{m("/w", bawn.ReadWrite)}, []string{"/w/.git/hooks"}},
		"the host's /tmp":          {with(m("/tmp", bawn.ReadOnly)), []string{"/tmp"}},
		"a /tmp of its own":        {with(m("/h/.ssh", bawn.Private)), nil},
	} {
		if diff := cmp.Diff(tt.want, Exceeds(parent, tt.child), cmp.Transformer("nil", func(l []string) []string { return append([]string(nil), l...) })); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if got := Exceeds(nil, parent); len(got) == 0 {
		t.Error("a parent without a plan has everything")
	}
}
