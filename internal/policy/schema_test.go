package policy

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

const schemaFile = "../../docs/schema/policy.schema.json"

func TestSchemaFileIsCurrent(t *testing.T) {
	golden.Compare(t, schemaFile, string(Schema()))
}

// TestSchemaKnowsEveryKey compares the schema with what a file is decoded into.
func TestSchemaKnowsEveryKey(t *testing.T) {
	var schema struct {
		Properties struct {
			Rule struct {
				Items struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	known := schema.Properties.Rule.Items.Properties
	keys := reflect.TypeFor[document]().Field(0).Type.Elem()
	for i := range keys.NumField() {
		if key := keys.Field(i).Tag.Get("toml"); known[key] == nil {
			t.Errorf("the schema lacks %q", key)
		}
	}
	if len(known) != keys.NumField() {
		t.Errorf("the schema has %d keys, a rule %d", len(known), keys.NumField())
	}
}

// TestStarter: as it stands it changes nothing; with every example in force it
// is a policy of one rule for each, and each has examples of its own.
func TestStarter(t *testing.T) {
	rules, err := ParseFile("f", Starter(), bawn.User)
	if err != nil || len(rules) != 0 {
		t.Errorf("%v, %v; want no rules", rules, err)
	}
	full := regexp.MustCompile(`(?m)^# (\[\[rule\]\]|[a-z_]+ = .*)$`).ReplaceAllString(string(Starter()), "$1")
	rules, err = ParseFile("f", []byte(full), bawn.User)
	if err != nil || len(rules) != strings.Count(full, "[[rule]]") || len(rules) < 5 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	for _, r := range rules {
		if len(r.Match) == 0 || r.ID == "" {
			t.Errorf("%+v has no id or no example", r)
		}
	}
	if _, err := New(rules, Options{}); err != nil {
		t.Error(err)
	}
}
