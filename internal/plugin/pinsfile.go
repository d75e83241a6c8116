package plugin

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn/internal/strictjson"
)

// parsePins reads what Save writes and nothing else.
func parsePins(text []byte) (Pins, error) {
	if _, err := canonicalUpTo(text, maxPins); err != nil { // a key that stands twice is an error there
		return Pins{}, err
	}
	var p Pins
	if err := strictjson.Decode(text, &p); err != nil {
		return Pins{}, err
	}
	if p.Instructions != "" && !isDigest(p.Instructions) {
		return Pins{}, fmt.Errorf("%q is no digest", cut(p.Instructions))
	}
	seen := map[string]bool{}
	for _, t := range p.Tools {
		if err := CheckName(t.Name); err != nil {
			return Pins{}, err
		}
		if !isDigest(t.Digest) || seen[t.Name] {
			return Pins{}, fmt.Errorf("the tool %q has no digest, or two", t.Name)
		}
		seen[t.Name] = true
	}
	return p, nil
}

func isDigest(s string) bool {
	text, ok := strings.CutPrefix(s, "sha256:")
	sum, err := hex.DecodeString(text)
	return ok && err == nil && len(sum) == 32 && text == strings.ToLower(text)
}
