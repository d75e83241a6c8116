package plugin

import (
	"encoding/json"
	"fmt"
)

// Limits of a tool's texts, in bytes: above those of servers' lists, and low
// enough that a server can't fill a model's memory with them.
const (
	maxDescription = 16 << 10
	maxSchema      = 256 << 10
)

// check reports why a tool is not fit to be offered to anybody.
func (t Tool) check() error {
	if err := CheckName(t.Name); err != nil {
		return err
	}
	if n := len(t.Title) + len(t.Description); n > maxDescription {
		return fmt.Errorf("its description has %d bytes; want at most %d", n, maxDescription)
	}
	if n := len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations); n > maxSchema {
		return fmt.Errorf("its schemas have %d bytes; want at most %d", n, maxSchema)
	}
	for what, text := range map[string]string{"title": t.Title, "description": t.Description} {
		if err := checkText(text); err != nil {
			return fmt.Errorf("its %s is not fit to be read: %w", what, err)
		}
	}
	for _, schema := range []json.RawMessage{t.InputSchema, t.OutputSchema, t.Annotations} {
		if err := checkTexts(schema); err != nil {
			return fmt.Errorf("its schema is not fit to be read: %w", err)
		}
	}
	return nil
}

// checkTexts checks every text of a JSON value, the names of members too.
func checkTexts(schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		return err
	}
	return checkValue(v)
}

func checkValue(v any) error {
	switch v := v.(type) {
	case string:
		return checkText(v)
	case []any:
		for _, e := range v {
			if err := checkValue(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			if err := checkText(name); err != nil {
				return err
			}
			if err := checkValue(e); err != nil {
				return err
			}
		}
	}
	return nil
}
