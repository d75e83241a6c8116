package dockerapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		rule       string // "" where it is read
	}{
		{"known", `{"Image":"a","HostConfig":{"Memory":7}}`, ""},
		{"unknown and empty", `{"Image":"a","HostConfig":{"Privileged":false,"Devices":[],"Sysctls":{},"PidMode":"","Future":null,"Deep":{"a":[0,{"b":""}]}}}`, ""},
		{"in every label", `{"Image":"a","Labels":{"a":"1","A":"2"}}`, ""},
		{"a word or several", `{"Image":"a","Cmd":"x","Entrypoint":["y"]}`, ""},

		{"privileged", `{"HostConfig":{"Privileged":true}}`, RuleHost},
		{"privileged in another case", `{"HostConfig":{"privileged":true}}`, RuleField},
		{"a field that engines ignore", `{"HostConfig":{"Future":1},"Future":{"a":[{"b":1}]},"name":"x"}`, ""},
		{"a field that engines obey", `{"HostConfig":{"CpusetCpus":"0"}}`, RuleField},
		{"a field that engines obey in another case", `{"HostConfig":{"cpuSetCpus":"0"}}`, RuleField},
		{"unknown where nothing is ignored", `{"HostConfig":{"LogConfig":{"Future":1}}}`, RuleField},
		{"known in another case", `{"image":"a"}`, RuleField},
		{"known in another case, empty", `{"image":""}`, RuleField},
		{"known in Turkish case", "{\"\u017fhell\":[]}", RuleField},
		{"twice", `{"Image":"a","Image":"b"}`, RuleBody},
		{"twice by an escape", `{"Image":"a","Im\u0061ge":"b"}`, RuleBody},
		{"twice below", `{"HostConfig":{"Binds":[],"Binds":["/:/x"]}}`, RuleBody},
		{"twice in labels", `{"Labels":{"a":"1","a":"2"}}`, RuleBody},
		{"unknown in a list", `{"HostConfig":{"Mounts":[{"Type":"volume","VolumeOptions":{"DriverConfig":{"Options":{"o":"bind"}}}}]}}`, RuleField},
		{"two texts", `{"Image":"a"}{"Image":"b"}`, RuleBody},
		{"something behind", `{"Image":"a"}x`, RuleBody},
		{"half", `{"Image":"a"`, RuleBody},
		{"no object", `["Image"]`, RuleBody},
		{"a number", `{"Image":1}`, RuleBody},
		{"an object for a list", `{"HostConfig":{"Binds":{"a":"b"}}}`, RuleBody},
		{"a fraction", `{"HostConfig":{"Memory":1.5}}`, RuleBody},
		{"too large a number", `{"HostConfig":{"Memory":9223372036854775808}}`, RuleBody},
		{"not UTF-8", "{\"Image\":\"\xff\"}", RuleBody},
		{"too deep", `{"Labels":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, RuleBody},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r createRequest
			err := decode([]byte(tt.body), &r)
			if got := ruleOf(err); got != tt.rule {
				t.Errorf("rule %q (%v); want %q", got, err, tt.rule)
			}
		})
	}
}

// ruleOf is the rule of a refusal, "" for no error.
func ruleOf(err error) string {
	var r *Refusal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &r):
		return r.Rule
	}
	return "no refusal: " + err.Error()
}

func TestReadBody(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		chunked          bool
		rule             string
	}{
		{"json", "application/json", `{"Image":"a"}`, false, ""},
		{"with a charset", "application/json; charset=utf-8", `{"Image":"a"}`, false, ""},
		{"in chunks", "application/json", `{"Image":"a"}`, true, ""},
		{"nothing", "", ``, false, ""},
		{"another type", "text/plain", `{"Image":"a"}`, false, RuleBody},
		{"no type", "", `{"Image":"a"}`, false, RuleBody},
		{"too large", "application/json", `{"Image":"` + strings.Repeat("a", maxBody) + `"}`, false, RuleBody},
		{"too large, in chunks", "application/json", `{"Image":"` + strings.Repeat("a", maxBody) + `"}`, true, RuleBody},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest("POST", "/containers/create", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Content-Type", tt.kind)
			var c createRequest
			if got := ruleOf(readBody(r, &c)); got != tt.rule {
				t.Errorf("rule %q; want %q", got, tt.rule)
			}
		})
	}
}

// Every other JSON reader reads the same: encoding the result again gives equal text.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"Image":"a","Cmd":["b"],"HostConfig":{"Binds":["/a:/b:ro"],"Memory":1}}`, `{"image":"a"}`, `{"Image":"a","Image":"b"}`,
		`{"HostConfig":{"Privileged":true}}`, `{"Labels":{"a":"b"}}`, `{"Cmd":"x"}`, `{}`, `[]`, `null`, `{"HostConfig":null}`, "{\"\u212a\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, again createRequest
		if decode(data, &r) != nil {
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := decode(text, &again); err != nil {
			t.Fatalf("what was read can't be read again: %v\n%s", err, text)
		}
		second, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(text), string(second)); d != "" {
			t.Error(d)
		}
		want, err := judge("", &r)
		if err != nil {
			return
		}
		checkBody(t, want)
	})
}

// checkBody checks what has to hold of everything that the engine is told.
func checkBody(t *testing.T, w *wanted) {
	t.Helper()
	h := &w.body.HostConfig
	if diff := cmp.Diff([]string{"ALL"}, h.CapDrop); diff != "" {
		t.Error(diff)
	}
	for _, c := range h.CapAdd {
		if !oneOf(c, capabilities...) {
			t.Errorf("capability %q", c)
		}
	}
	if len(h.Mounts) != 0 || h.NetworkMode != "" || h.IpcMode != "private" || h.CgroupnsMode != "private" || h.RestartPolicy.Name != "no" {
		t.Errorf("before anything was looked at: %+v", h)
	}
	if h.SecurityOpt == nil || h.SecurityOpt[0] != "no-new-privileges" || len(h.SecurityOpt) != 1 {
		t.Errorf("security options %q", h.SecurityOpt)
	}
	for name := range w.body.Labels {
		if strings.HasPrefix(strings.ToLower(name), labelPrefix) {
			t.Errorf("label %q", name)
		}
	}
}
