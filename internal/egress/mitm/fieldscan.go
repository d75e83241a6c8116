package mitm

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

const (
	maxName = 4 << 10 // bytes of a field's name that are looked at
	maxPart = 4 << 10 // bytes of the header of a part
)

// formFields are those of application/x-www-form-urlencoded.
type formFields struct {
	name []byte // as it has come so far
	skip bool   // to the next name
}

func (f *formFields) feed(p []byte) bool {
	for len(p) > 0 {
		if f.skip {
			i := bytes.IndexAny(p, "&;")
			if i < 0 {
				return false
			}
			f.skip, p = false, p[i+1:]
			continue
		}
		i := bytes.IndexAny(p, "=&;")
		if i < 0 {
			f.name = append(f.name, p...)
			return f.long()
		}
		f.name = append(f.name, p[:i]...)
		if namesOverride(unescaped(string(f.name))) {
			return true
		}
		f.name, f.skip, p = f.name[:0], p[i] == '=', p[i+1:]
	}
	return false
}

// long judges a name by its beginning; one of little but spaces has hidden it.
func (f *formFields) long() bool {
	if len(f.name) <= maxName {
		return false
	}
	plain := unescaped(string(f.name))
	f.name, f.skip = f.name[:0], true
	return namesOverride(plain) || len(strings.TrimLeft(plain, beforeNames)) < maxName/8
}

// jsonFields are those of an object that is the whole body.
type jsonFields struct {
	depth         int
	text, escaped bool // in a string, behind a backslash
	named         bool // the string is a field's name
	last          byte // outside of strings
	name          []byte
}

func (f *jsonFields) feed(p []byte) bool {
	for _, c := range p {
		switch {
		case f.text:
			if f.inText(c) {
				return true
			}
			continue
		case c <= ' ':
			continue
		case c == '"':
			f.text, f.named, f.name = true, f.depth == 1 && (f.last == '{' || f.last == ','), f.name[:0]
		case c == '{' || c == '[':
			f.depth++
		case c == '}' || c == ']':
			f.depth--
		}
		f.last = c
	}
	return false
}

func (f *jsonFields) inText(c byte) bool {
	if f.named && len(f.name) < maxName && (c != '"' || f.escaped) {
		f.name = append(f.name, c)
	}
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.text = false
		var name string
		return f.named && json.Unmarshal([]byte(`"`+string(f.name)+`"`), &name) == nil && namesOverride(name)
	}
	return false
}

// partFields are those of the types "multipart". Everything is looked at that
// stands between a delimiter and the longest end of a header that a server may
// want. No delimiter has to begin a line.
type partFields struct {
	delimiter []byte
	head      []byte // of a part, or the possible beginning of a delimiter
	in        bool   // head is a header
}

func (f *partFields) feed(p []byte) bool {
	f.head = append(f.head, p...)
	for {
		if !f.in {
			i := bytes.Index(f.head, f.delimiter)
			if i < 0 {
				f.head = append(f.head[:0], f.head[max(0, len(f.head)-len(f.delimiter)+1):]...)
				return false
			}
			f.in, f.head = true, f.head[i+len(f.delimiter):]
		}
		end := bytes.Index(f.head, []byte("\r\n\r\n"))
		if end < 0 {
			return len(f.head) > maxPart || partNamesOverride(f.head)
		}
		if end > maxPart || partNamesOverride(f.head[:end+1]) {
			return true
		}
		f.in, f.head = false, f.head[end+len("\r\n\r\n"):]
	}
}

// partName finds a name of a part as quoted, bare, by RFC 2231 (name*) or from
// Content-ID. Names in pieces (name*0) and encoded words are not resolved.
var partName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bname\s*\*\s*[0-9]+\s*\*?\s*=|(?:\bname\s*\*?\s*=|\bcontent-id\s*:)[\s"']*(?:[a-z0-9-]+'[a-z-]*')?` +
		`(?:=\?|[^a-z0-9]*[^a-z0-9\s"']\s*method[^a-z0-9]|x.http.method[^a-z0-9]|x.http.method.override|x.method.override)`)
})

func partNamesOverride(header []byte) bool {
	return partName().MatchString(strings.ToLower(unescaped(strings.ReplaceAll(string(header), `\`, ""))))
}
