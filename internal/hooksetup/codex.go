package hooksetup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
)

// Codex runs a hook of ~/.codex/hooks.json or of a project only once its human
// has trusted it. config.toml then holds, for the hook's place in its file, the
// digest of what it runs.

// A trust is the digest of one hook, and the place that it is for.
type trust struct{ place, digest string }

// trusts returns those of our handlers in a hooks file that is read under any
// of these names.
func trusts(text []byte, names []string) ([]trust, error) {
	d, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	hooks := member(&d.root, "hooks")
	if hooks == nil || hooks.Value.Kind() != '{' {
		return nil, nil
	}
	s := shapes["codex"]
	var all []trust
	for _, m := range hooks.Value.(*hujson.Object).Members {
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for i := range list.Elements {
			for j, h := range s.handlers(&list.Elements[i]) {
				if !s.ours(h, "codex") {
					continue
				}
				digest, err := trustDigest(label(nameOf(m)), h)
				if err != nil {
					return nil, err
				}
				for _, name := range names {
					all = append(all, trust{fmt.Sprintf("%s:%s:%d:%d", name, label(nameOf(m)), i, j), digest})
				}
			}
		}
	}
	return all, nil
}

// label is an event's name as the places have it: "pre_tool_use".
func label(event string) string {
	var b strings.Builder
	for i, r := range event {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// trustDigest is Codex's: SHA-256 of what the hook is, as JSON with sorted
// names. Ours have no matcher and no message.
func trustDigest(event string, handler *hujson.Value) (string, error) {
	d := document{root: handler.Clone()}
	v, err := d.meaning()
	if err != nil {
		return "", err
	}
	h := v.(map[string]any)
	what := map[string]any{"event_name": event, "hooks": []any{map[string]any{
		"type": "command", "command": h["command"], "timeout": h["timeout"], "async": false,
	}}}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(what); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(bytes.TrimSuffix(text.Bytes(), []byte("\n")))), nil
}

// putTrust returns config.toml with the trust in ours, and in no place where
// ours was once.
func putTrust(old []byte, want []trust, names []string) ([]byte, error) {
	text, err := takeTrust(old, want, names)
	if err != nil {
		return nil, err
	}
	for _, t := range want {
		if text, err = setTOML(text, t.digest, "hooks", "state", t.place, "trusted_hash"); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// takeTrust removes the trust in our hooks: entries for the file of these names
// whose digest is that of one of our hooks, except for places that are to keep
// it.
func takeTrust(old []byte, keep []trust, names []string, ours ...trust) ([]byte, error) {
	v, err := tomlMeaning(old)
	if err != nil {
		return nil, err
	}
	state, ok := lookup(v, []string{"hooks", "state"})
	if !ok {
		return old, nil
	}
	places, _ := state.(map[string]any)
	ours = append(ours, keep...)
	text := old
	for _, place := range sortedNames(places) {
		entry, _ := places[place].(map[string]any)
		has := func(t trust) bool { return t.digest == entry["trusted_hash"] }
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(place, n+":") }) || !slices.ContainsFunc(ours, has) ||
			slices.ContainsFunc(keep, func(t trust) bool { return t.place == place }) {
			continue
		}
		if text, err = unsetTOML(text, "hooks", "state", place, "trusted_hash"); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
