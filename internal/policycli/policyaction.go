package policycli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/config"
)

// An actionLine is one action as JSON.
type actionLine struct {
	situation
	ID        json.RawMessage // handed back as it is
	Kind      string
	Operation string
	Resource  string
	Command   string
	Args      []string
	Path      string
	Host      string
	URL       string
	Tool      string
	Session   string
	Agent     string
}

// actionKeys are the keys of an action, as messages name them.
var actionKeys = []string{
	"kind", "operation", "command", "args", "path", "host", "url", "tool", "resource", "cwd", "workspace", "home", "system",
	"mode", "autonomy", "contained", "covered", "untrusted", "private", "session", "agent", "id",
}

// parseAction reads one action. It is stricter than encoding/json, because what
// is judged must be what the sender meant. It refuses a key in another spelling
// or given twice, text that is not UTF-8 or half a surrogate pair, and anything
// after the object.
func parseAction(data []byte, a *actionLine) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	s := scanner{data: data}
	if !s.next('{') {
		return errors.New(`want a JSON object, for example {"kind":"command","command":"git status"}`)
	}
	var seen [32]bool
	for first := true; !s.next('}'); first = false {
		if !first && !s.next(',') {
			return s.errorf(`want "," or "}"`)
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		i := keyIndex(key)
		switch {
		case i < 0:
			return unknownKey(key)
		case seen[i]:
			return fmt.Errorf("the key %q is given twice", key)
		case !s.next(':'):
			return s.errorf(`want ":" after the key %q`, key)
		}
		seen[i] = true
		if err := s.value(a, actionKeys[i]); err != nil {
			return err
		}
	}
	if s.space(); s.at < len(data) {
		return s.errorf("want one object a line, and nothing after it")
	}
	return nil
}

// keyIndex finds a key by its name or its alias; it returns -1 for an unknown key.
func keyIndex(key string) int {
	switch key {
	case "argv":
		key = "args"
	case "dir":
		key = "cwd"
	}
	return slices.Index(actionKeys, key)
}

func unknownKey(key string) error {
	if meant := config.Nearest(key, actionKeys); meant != "" {
		return fmt.Errorf("unknown key %q; did you mean %q", key, meant)
	}
	return fmt.Errorf("unknown key %q; want one of %s", key, strings.Join(actionKeys, ", "))
}

// field is where the text or the truth of a key goes.
func (a *actionLine) field(key string) (text *string, truth *bool) {
	switch key {
	case "kind":
		return &a.Kind, nil
	case "operation":
		return &a.Operation, nil
	case "command":
		return &a.Command, nil
	case "path":
		return &a.Path, nil
	case "host":
		return &a.Host, nil
	case "url":
		return &a.URL, nil
	case "tool":
		return &a.Tool, nil
	case "resource":
		return &a.Resource, nil
	case "session":
		return &a.Session, nil
	case "agent":
		return &a.Agent, nil
	}
	return a.situation.field(key)
}

// field is where the text or the truth of a setting goes; nil for none.
func (s *situation) field(key string) (text *string, truth *bool) {
	switch key {
	case "cwd":
		return &s.Cwd, nil
	case "workspace":
		return &s.Workspace, nil
	case "home":
		return &s.Home, nil
	case "system":
		return &s.System, nil
	case "mode":
		return &s.Mode, nil
	case "autonomy":
		return &s.Autonomy, nil
	case "contained":
		return nil, &s.Contained
	case "covered":
		return nil, &s.Covered
	case "untrusted":
		return nil, &s.Untrusted
	case "private":
		return nil, &s.Private
	}
	return nil, nil
}

// A scanner reads JSON (RFC 8259) from one line.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("column %d: %s", s.at+1, fmt.Sprintf(format, args...))
}

func (s *scanner) space() {
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.at]) >= 0 {
		s.at++
	}
}

// next skips a character, if it is the next one after white space.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	s.space()
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// value reads the value of a key. null is as if the key were not there.
func (s *scanner) value(a *actionLine, key string) (err error) {
	text, truth := a.field(key)
	switch {
	case key == "id":
		a.ID, err = s.raw()
	case s.word("null"):
	case key == "args":
		a.Args, err = s.texts()
	case text != nil:
		*text, err = s.text()
	case s.word("true"):
		*truth = true
	case s.word("false"):
		*truth = false
	default:
		err = s.errorf("want true or false")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// texts reads a list of strings.
func (s *scanner) texts() (out []string, err error) {
	if !s.next('[') {
		return nil, s.errorf("want a list of strings")
	}
	if s.next(']') {
		return nil, nil
	}
	for {
		text, err := s.text()
		if err != nil {
			return nil, err
		}
		out = append(out, text)
		switch {
		case s.next(']'):
			return out, nil
		case !s.next(','):
			return nil, s.errorf(`want "," or "]"`)
		}
	}
}

// text reads a string.
func (s *scanner) text() (string, error) {
	if !s.next('"') {
		return "", s.errorf("want a string")
	}
	begin, escaped := s.at, false
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			raw := s.data[begin:s.at]
			s.at++
			if escaped {
				return s.unescape(raw)
			}
			return string(raw), nil
		case c < ' ':
			return "", s.errorf("a control character in a string; write it as \\u%04x", c)
		case c == '\\':
			escaped = true
			s.at++
		}
	}
	return "", s.errorf("the string does not end")
}

// escapes are the characters that stand for others after a backslash.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (s *scanner) unescape(raw []byte) (string, error) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if c, ok := escapes[raw[i]]; ok {
			out = append(out, c)
			continue
		}
		r := codeUnit(raw[i:])
		if utf16.IsSurrogate(r) && i+6 < len(raw) && raw[i+5] == '\\' {
			r = utf16.DecodeRune(r, codeUnit(raw[i+6:]))
			i += 6
		}
		if r < 0 || utf16.IsSurrogate(r) || r == utf8.RuneError && !bytes.EqualFold(raw[i:i+5], []byte("ufffd")) {
			return "", s.errorf("a string has an invalid escape")
		}
		out = utf8.AppendRune(out, r)
		i += 4
	}
	return string(out), nil
}

// codeUnit reads uXXXX; it returns -1 for anything else.
func codeUnit(raw []byte) rune {
	if len(raw) < 5 || raw[0] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// raw reads any value.
func (s *scanner) raw() (json.RawMessage, error) {
	s.space()
	begin, depth := s.at, 0
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			if _, err := s.text(); err != nil {
				return nil, err
			}
			s.at--
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}' || c == ',') && depth == 0:
			return s.checked(begin)
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil, s.errorf("the value does not end")
}

func (s *scanner) checked(begin int) (json.RawMessage, error) {
	if raw := bytes.TrimSpace(s.data[begin:s.at]); json.Valid(raw) {
		return raw, nil
	}
	return nil, s.errorf("want a value of JSON")
}
