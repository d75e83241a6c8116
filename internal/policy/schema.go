package policy

import (
	"encoding/json"
	"strconv"

	"github.com/bawn-dev/bawn"
)

// schemaID is the schema's name, not an address that anything is fetched from.
const schemaID = "https://github.com/bawn-dev/bawn/docs/schema/policy.schema.json"

type object = map[string]any

// Schema returns the JSON Schema (draft 2020-12) of a policy file. Editors
// read it through a "#:schema" line.
func Schema() []byte {
	texts := object{"type": "array", "items": object{"type": "string"}}
	list := func(doc string) object {
		return object{"description": doc, "type": texts["type"], "items": texts["items"]}
	}
	var kinds, verdicts []string
	var suiting []object
	for k := bawn.Filesystem; k <= bawn.Tool; k++ {
		kinds = append(kinds, k.String())
		suiting = append(suiting, object{
			"if":   object{"properties": object{"kind": object{"const": k.String()}}},
			"then": object{"properties": object{"operations": object{"items": object{"enum": operations[k]}}}},
		})
	}
	for v := bawn.Deny; v <= bawn.Allow; v++ {
		verdicts = append(verdicts, v.String())
	}
	rule := object{
		"type": "object", "additionalProperties": false, "required": []string{"kind", "pattern", "verdict"}, "allOf": suiting,
		"properties": object{
			"id":         object{"type": "string", "description": "name of the rule in decisions and in the log; its source and number without one"},
			"kind":       object{"enum": kinds, "description": "what the rule is about"},
			"operations": list("what is done to it; every operation without the key"),
			"pattern":    object{"type": "string", "minLength": 1, "maxLength": MaxPattern, "description": "words of a command, a path, a host or the name of a tool"},
			"verdict":    object{"enum": verdicts, "description": "a project's rule may not allow"},
			"priority":   object{"type": "integer", "default": 0, "description": "the highest decides; of equals the strictest"},
			"reason":     object{"type": "string", "description": "for the agent and the human; names no secret"},
			"match":      list("examples that the pattern must match, tried when the file is read"),
			"not_match":  list("examples that it must not match"),
		},
	}
	schema := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schemaID, "description": "Policy of Bawn", "type": "object",
		"additionalProperties": false, "properties": object{"rule": object{"type": "array", "items": rule}},
	}
	data, _ := json.MarshalIndent(schema, "", "  ") // maps of strings, numbers and lists
	return append(data, '\n')
}

// Starter returns a first policy file: what a rule is, and an example of each
// kind, commented out.
func Starter() []byte {
	return []byte(`# Policy of Bawn: what agents may do. Remove a "# " to make an example count.
# "bawn policy check" checks the file, "bawn policy explain" shows what it does,
# "bawn policy diff" what a change makes reachable.
# For an editor that completes keys: bawn policy schema > policy.schema.json beside this file,
# and as its first line: #:schema ./policy.schema.json

# A rule has a kind, a pattern and a verdict (deny, ask or allow). The highest priority
# decides; at equal priority deny beats ask beats allow. The built-in rules have priorities
# up to ` + strconv.Itoa(highest()) + `. Examples in match and not_match are tried when the file is read: a rule that
# fails one is refused. No rule allows what is dangerous, opaque or protected.

# Words of a command, never text: flags match in any spelling, a last * permits more words.
# [[rule]]
# id = "publish-by-ci"
# kind = "command"
# pattern = "npm publish *"
# verdict = "deny"
# priority = 10
# reason = "releases are made by CI"
# match = ["npm publish", "npm publish --access public"]
# not_match = ["npm pack"]

# One command, exactly these words.
# [[rule]]
# id = "push-my-branch"
# kind = "command"
# pattern = "git push origin HEAD"
# verdict = "allow"
# priority = 10
# match = ["git push origin HEAD"]
# not_match = ["git push origin HEAD --force"]

# Paths start at /, ~/ or the workspace; ** is any number of directories.
# [[rule]]
# id = "migrations"
# kind = "filesystem"
# operations = ["write", "create", "delete"]
# pattern = "migrations/**"
# verdict = "ask"
# priority = 10
# match = ["migrations/0001.sql"]
# not_match = ["docs/migrations.md"]

# Hosts are NAME, *.NAME (what lies below it) or *, with an optional :PORT.
# [[rule]]
# id = "our-registry"
# kind = "network"
# pattern = "registry.example.com:443"
# verdict = "allow"
# priority = 10
# match = ["registry.example.com:443"]
# not_match = ["registry.example.com:80"]

# Tools are names with *.
# [[rule]]
# id = "no-browser"
# kind = "tool"
# pattern = "mcp__browser__*"
# verdict = "deny"
# priority = 10
# match = ["mcp__browser__click"]
`)
}

// highest is the highest priority of a built-in rule.
func highest() (n int) {
	for _, r := range Builtins() {
		n = max(n, r.Priority)
	}
	return n
}
