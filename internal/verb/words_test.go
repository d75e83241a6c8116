package verb

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestJSONIsPlain: no document holds a character that a terminal obeys or does not show,
// and readers get the same value. The control is the encoder of the standard library.
func TestJSONIsPlain(t *testing.T) {
	v := map[string]any{"é\u202e": "a\u0085b\u009bc\x7fd\u200be\U000e0041f\x1bg <你>&\u2028"}
	var lines, document, bare bytes.Buffer
	if err := JSONLines(&lines).Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&document, v); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&bare).Encode(v); err != nil {
		t.Fatal(err)
	}
	const acts = "\u202e\u0085\u009b\x7f\u200b\U000e0041\x1b\u2028"
	if !strings.ContainsAny(bare.String(), acts) {
		t.Errorf("the control has nothing to escape: %q", &bare)
	}
	for _, text := range []string{lines.String(), document.String()} {
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("read back %q, %v", got, err)
		}
		if strings.ContainsAny(text, acts) || !strings.Contains(text, "<你>&") {
			t.Errorf("printed %q", text)
		}
	}
	if strings.Count(lines.String(), "\n") != 1 {
		t.Errorf("more than a line: %q", &lines)
	}
}
