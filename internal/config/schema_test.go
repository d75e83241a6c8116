package config

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

const schemaFile = "../../docs/schema/config.schema.json"

func TestSchemaFileIsCurrent(t *testing.T) {
	golden.Compare(t, schemaFile, string(Schema()))
}

// TestSchemaKnowsEveryKey walks the schema as an editor would.
func TestSchemaKnowsEveryKey(t *testing.T) {
	var root object
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	properties := func(o object) object { return o["properties"].(object) }
	resources := properties(root["$defs"].(object)["resources"].(object))
	isolation := properties(properties(root)["isolation"].(object))
	docker := properties(isolation["docker_options"].(object))
	inProfile := properties(properties(root)["profiles"].(object)["additionalProperties"].(object))
	for _, k := range keys {
		in := properties(root)
		switch {
		case k.limit():
			in = resources
		case strings.HasPrefix(k.path, dockerTable):
			in = docker
		case strings.HasPrefix(k.path, "policy."):
			in = properties(properties(root)["policy"].(object))
		case strings.HasPrefix(k.path, "isolation."):
			in = isolation
			if _, ok := inProfile[k.name()]; ok != k.profile {
				t.Errorf("%s in profiles: %v; want %v", k.path, ok, k.profile)
			}
		}
		if _, ok := in[k.name()]; !ok {
			t.Errorf("the schema lacks %s", k.path)
		}
	}
}

func TestSchemaDurationPattern(t *testing.T) {
	pattern := regexp.MustCompile(find("isolation.resources.timeout").schema()["pattern"].(string))
	for _, d := range []time.Duration{time.Second, 90 * time.Minute, 12 * time.Hour, 1500 * time.Millisecond} {
		if s := shortDuration(d); !pattern.MatchString(s) {
			t.Errorf("%q does not match the schema's pattern", s)
		}
	}
}

// TestStarterIsValid checks the file as it is written and with every key in
// it uncommented, which changes nothing.
func TestStarterIsValid(t *testing.T) {
	in := world(t)
	starter := Starter(in.Machine)
	put(t, in.User(), string(starter))
	before := mustLoad(t, in)
	put(t, in.User(), regexp.MustCompile(`(?m)^# ([a-z_]+ = .*|\[.*)$`).ReplaceAllString(string(starter), "$1"))
	after := mustLoad(t, in)
	a := after.Isolation(in.Workspace)
	a.Resources.CPUs, a.Resources.CPUShares = 0, 0 // these are unlimited without a line
	a.Egress.MaxConns, a.Egress.MaxOutMB, a.Egress.MaxUses, a.Egress.MaxLentMB = 0, 0, 0, 0
	same(t, before.Isolation(in.Workspace), a)
	if before.Autonomy != after.Autonomy || before.Mode != after.Mode || before.Provider != after.Provider {
		t.Errorf("uncommenting the starter changed %+v to %+v", before, after)
	}
}
