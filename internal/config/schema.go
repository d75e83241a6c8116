package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// schemaID is the schema's name, not an address that anything is fetched from.
const schemaID = "https://github.com/bawn-dev/bawn/docs/schema/config.schema.json"

type object = map[string]any

// Schema returns the JSON Schema (draft 2020-12) of a configuration file, made
// from the table of keys. Editors read it through a "#:schema" line.
func Schema() []byte {
	top, policy, isolation, inProfile := object{}, object{}, object{}, object{}
	resources, docker := object{}, object{}
	for _, k := range keys {
		switch name := k.name(); {
		case k.limit():
			resources[name] = k.schema()
		case strings.HasPrefix(k.path, dockerTable):
			docker[name] = k.schema()
		case strings.HasPrefix(k.path, "policy."):
			policy[name] = k.schema()
		case strings.HasPrefix(k.path, "isolation."):
			isolation[name] = k.schema()
			if k.profile {
				inProfile[name] = k.schema()
			}
		default:
			top[name] = k.schema()
		}
	}
	isolation["resources"], inProfile["resources"] = object{"$ref": "#/$defs/resources"}, object{"$ref": "#/$defs/resources"}
	isolation["docker_options"] = closed(`what the provider "docker" starts, and how`, docker)
	inProfile[extendsKey.path] = extendsKey.schema()
	top["policy"] = closed("how actions are decided", policy)
	top["isolation"] = closed("what a session may see and use", isolation)
	top["profiles"] = object{"type": "object", "description": "named bundles of isolation keys", "maxProperties": maxProfiles,
		"propertyNames":        object{"pattern": "^[a-z0-9][a-z0-9._-]{0,63}$", "not": object{"enum": builtinNames}},
		"additionalProperties": closed("keys that count when the profile is chosen", inProfile)}
	schema := closed("Configuration of Bawn", top)
	schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", schemaID
	schema["$defs"] = object{"resources": closed("limits of a session", resources)}
	data, _ := json.MarshalIndent(schema, "", "  ") // maps of strings, numbers and lists
	return append(data, '\n')
}

// closed is a table without other keys.
func closed(doc string, properties object) object {
	return object{"type": "object", "description": doc, "additionalProperties": false, "properties": properties}
}

func (k *key) schema() object {
	s := object{"description": k.doc}
	switch k.kind {
	case text:
		s["type"] = "string"
		if k.oneOf != nil {
			s["enum"] = k.oneOf
		}
	case duration:
		s["type"], s["pattern"] = "string", `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	case boolean:
		s["type"] = "boolean"
	case list:
		s["type"], s["items"], s["maxItems"] = "array", object{"type": "string"}, maxEntries
	default:
		s["type"], s["minimum"], s["maximum"] = map[kind]string{whole: "integer", number: "number"}[k.kind], k.min, k.max
	}
	return s
}

// Starter returns a first configuration file: every key that a user may set,
// commented out, with its meaning and its default, if it has one.
func Starter(m Machine) []byte {
	var b strings.Builder
	b.WriteString("# Configuration of Bawn. Remove a \"# \" to change a value; \"bawn config check\" checks the file.\n" +
		"# For an editor that completes keys: bawn config schema > config.schema.json beside this file,\n" +
		"# and as its first line: #:schema ./config.schema.json\n")
	st := newState(m, paths{workspace: "/workspace", home: "/home/user"})
	section := ""
	for _, k := range keys {
		if k.path == "pinned" {
			continue
		}
		if in := strings.TrimSuffix(strings.TrimSuffix(k.path, k.name()), "."); in != section {
			section = in
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		fmt.Fprintf(&b, "\n# %s\n# %s = %s\n", k.doc, k.name(), st.example(k))
	}
	b.WriteString("\n# A profile of your own, chosen with policy_profile above or --profile work.\n" +
		"# [profiles.work]\n# extends = \"online\"\n# rw = [\"~/scratch\"]\n")
	return []byte(b.String())
}

// example is the value in force without any file, or one that could be.
func (st *state) example(k *key) string {
	if k.kind == list {
		return "[]"
	}
	if s, ok := st.scalars[k.path]; ok {
		return show(s.value)
	}
	return map[string]string{"autonomy": show("moderate"), containedKey: show("table"), "isolation.resources.cpus": "1.5", "isolation.resources.cpu_shares": "1024",
		"isolation.resources.net_connections": "256", "isolation.resources.net_out_mb": "1024",
		"isolation.resources.secret_requests": "1000", "isolation.resources.secret_out_mb": "64"}[k.path]
}
