package audit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/bawn-dev/bawn"
)

// appendEvent appends e as encoding/json writes it, but for HTML's characters,
// which stay legible. That package would first study the type, which takes
// longer than all else about a record, and a short-lived Bawn writes two.
func appendEvent(dst []byte, e *bawn.Event) ([]byte, error) {
	at, err := e.Time.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := object{append(dst, '{')}
	o.text("id", e.ID)
	o.raw("timestamp", string(at))
	o.text("session", e.Session)
	o.optional("parent", e.Parent)
	o.text("agentId", e.Agent)
	o.text("resourceType", e.Kind)
	o.text("operation", e.Operation)
	o.text("resource", e.Resource)
	o.list("args", e.Args)
	o.optional("dir", e.Dir)
	o.text("requested", e.Requested.String())
	o.text("resolved", e.Resolved.String())
	o.text("source", e.Source)
	o.optional("rule", e.Rule)
	o.optional("reason", e.Reason)
	o.optional("ticket", e.Ticket)
	o.optional("provider", e.Provider)
	o.text("mode", e.Mode.String())
	if e.Exit != nil {
		o.raw("exit", strconv.Itoa(*e.Exit))
	}
	o.raw("durationMs", strconv.FormatInt(e.DurationMS, 10))
	if e.Bytes != 0 {
		o.raw("bytes", strconv.FormatInt(e.Bytes, 10))
	}
	o.details(e.Details)
	return append(o.b, '}'), nil
}

// An object is JSON in the making: "{", then members.
type object struct{ b []byte }

func (o *object) key(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(appendString(o.b, name), ':')
}

func (o *object) raw(name, value string) {
	o.key(name)
	o.b = append(o.b, value...)
}

func (o *object) text(name, value string) {
	o.key(name)
	o.b = appendString(o.b, value)
}

func (o *object) optional(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	o.key(name)
	for i, v := range values {
		o.b = append(o.b, "[,"[min(i, 1)])
		o.b = appendString(o.b, v)
	}
	o.b = append(o.b, ']')
}

func (o *object) details(m map[string]string) {
	if len(m) == 0 {
		return
	}
	o.key("details")
	inner := object{append(o.b, '{')}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		inner.text(k, m[k])
	}
	o.b = append(inner.b, '}')
}

// appendString appends s in quotes. What is not printable is left to
// encoding/json.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start, from := len(dst)-1, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return appendUnusual(dst[:start], s)
		case c == '"' || c == '\\':
			dst = append(append(dst, s[from:i]...), '\\')
			from = i
		}
	}
	return append(append(dst, s[from:]...), '"')
}

func appendUnusual(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be written
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
