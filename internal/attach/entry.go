package attach

import (
	"encoding/json"
	"strconv"
	"time"
)

// appendEntry appends e as JSON. Every session writes its entry before it
// starts, and encoding/json's first look at a type takes three times as long
// as everything else that the registry costs.
func appendEntry(b []byte, e *Entry) []byte {
	b = appendField(append(b, `{"id":`...), "", e.ID)
	if e.Parent != "" {
		b = appendField(b, `,"parent":`, e.Parent)
	}
	b = appendField(b, `,"agent":`, e.Agent)
	b = appendList(append(b, `,"argv":`...), e.Argv)
	b = appendField(b, `,"dir":`, e.Dir)
	b = appendField(b, `,"workspace":`, e.Workspace)
	b = appendField(b, `,"provider":`, e.Provider)
	b = appendField(b, `,"mode":`, e.Mode)
	b = appendField(b, `,"network":`, e.Network)
	if len(e.Zones) > 0 {
		b = appendList(append(b, `,"zones":`...), e.Zones)
	}
	if len(e.InPart) > 0 {
		b = appendList(append(b, `,"enforcedInPart":`...), e.InPart)
	}
	b = appendTime(append(b, `,"started":`...), e.Started)
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(e.PID), 10)
	if e.Copy != "" {
		b = appendField(b, `,"copy":`, e.Copy)
	}
	b = strconv.AppendBool(append(b, `,"terminal":`...), e.Terminal)
	b = strconv.AppendBool(append(b, `,"hosted":`...), e.Hosted)
	b = strconv.AppendInt(append(b, `,"viewers":`...), int64(e.Viewers), 10)
	if !e.Ended.IsZero() {
		b = appendTime(append(b, `,"ended":`...), e.Ended)
	}
	if e.Exit != nil {
		b = strconv.AppendInt(append(b, `,"exit":`...), int64(*e.Exit), 10)
	}
	return append(b, '}', '\n')
}

func appendTime(b []byte, t time.Time) []byte {
	b = t.AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"')
}

func appendList(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendField(b, "", s)
	}
	return append(b, ']')
}

// appendField appends a name and a string. Entries that are not plain are left
// to encoding/json.
func appendField(b []byte, name, s string) []byte {
	b = append(b, name...)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // every string can be written
			return append(b, text...)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}
