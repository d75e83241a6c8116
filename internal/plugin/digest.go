package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// A Tool is a server's description of one of its tools, as far as a model or a
// rule can use it. The members are as they came, as JSON; nil stands for one
// that was not there.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`
}

// Digest is "sha256:" and the SHA-256, in hexadecimal, of the tool in canonical
// JSON (RFC 8785): how a server spells and orders it does not count. Text that
// is not JSON, has a key twice or a number that no float64 holds is an error.
func Digest(t Tool) (string, error) {
	text, err := t.canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// canonical is the tool as one object.
func (t Tool) canonical() ([]byte, error) {
	known, err := t.hints()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  *hints          `json:"annotations,omitempty"`
	}{t.Name, t.Title, t.Description, unlessNull(t.InputSchema), unlessNull(t.OutputSchema), known})
	if err != nil {
		return nil, err
	}
	return canonical(text)
}

// hints are the annotations that the protocol knows; others reach nobody.
type hints struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// hints reads the annotations, nil where they say nothing: a hint that is left
// out and one that is stated as it is by default are the same.
func (t Tool) hints() (*hints, error) {
	if len(unlessNull(t.Annotations)) == 0 {
		return nil, nil
	}
	var h hints
	if err := json.Unmarshal(t.Annotations, &h); err != nil {
		return nil, fmt.Errorf("the annotations can't be read: %w", err)
	}
	if h == (hints{}) {
		return nil, nil
	}
	return &h, nil
}

// unlessNull returns nil for a member that is null: it is as if it was not there.
func unlessNull(text json.RawMessage) json.RawMessage {
	if string(text) == "null" {
		return nil
	}
	return text
}

// DigestText is Digest for a text, such as the instructions of a server; "" for
// an empty one.
func DigestText(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
