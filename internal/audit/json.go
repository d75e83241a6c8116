package audit

import (
	"bytes"
	"encoding/json"

	"github.com/bawn-dev/bawn"
)

// toJSON returns e as JSON. HTML's characters stay legible.
func toJSON(e *bawn.Event) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, 1024))
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
