package dockerapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// strictList reads a list of strings, or a map of strings to true.
type strictList []string

func (l *strictList) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var m map[string]bool
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		maps.DeleteFunc(m, func(_ string, on bool) bool { return !on })
		*l = slices.Sorted(maps.Keys(m))
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// words reads a list of strings, or a single one.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*w = make(words, 1)
		return json.Unmarshal(data, &(*w)[0])
	}
	return json.Unmarshal(data, (*[]string)(w))
}
