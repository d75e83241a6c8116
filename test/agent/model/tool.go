package main

import "strings"

// A tool is a tool that the agent offers.
type tool struct {
	Name   string
	Group  string // the namespace that it is in, with the Responses API
	Schema schema
}

// schema is what is used of a tool's JSON Schema.
type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type any   `json:"type"` // a name, in capitals with Gemini, or a list of names
	Enum []any `json:"enum"`
}

// is reports whether the tool has the name. A prefix that agents put before the names of an
// MCP server's tools does not count.
func (t tool) is(name string) bool {
	return t.Name == name || strings.HasSuffix(t.Name, "__"+name)
}

// takes returns the first of the names that the tool has a property of.
func (t tool) takes(names []string) string {
	for _, name := range names {
		if _, ok := t.Schema.Properties[name]; ok {
			return name
		}
	}
	return ""
}

// any returns some value that the property takes.
func (p property) any() any {
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	name, _ := p.Type.(string)
	switch strings.ToLower(name) {
	case "boolean":
		return false
	case "number", "integer":
		return 1
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "scripted"
}
