package hooksetup

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

//go:embed texts
var texts embed.FS

// mark stands in every file that is wholly Bawn's.
const mark = `Written by "bawn init"`

// A text is a file that is wholly Bawn's: code that an agent loads, or runs.
type text struct {
	parts []string // below texts
	shell bool     // bawn's place is quoted for a shell, not as a string of a program
}

var (
	plugin    = text{parts: []string{"ask.js", "opencode.js"}}
	extension = text{parts: []string{"ask.js", "pi.ts"}}
	script    = text{parts: []string{"cline.sh"}, shell: true}
)

// patience is how long our own code waits for bawn, in seconds: an hour, in
// which a human is found.
const patience = 3600

// is returns the file.
func (t text) is(bawn, agent string, flags ...string) ([]byte, error) {
	var b bytes.Buffer
	for _, p := range t.parts {
		part, err := texts.ReadFile("texts/" + p)
		if err != nil {
			return nil, err
		}
		b.Write(part)
	}
	place, more := quote(bawn), ""
	for _, f := range flags {
		more += map[bool]string{true: " " + f, false: `, "` + f + `"`}[t.shell]
	}
	if !t.shell {
		s, err := json.Marshal(bawn)
		if err != nil {
			return nil, err
		}
		place = string(s[1 : len(s)-1]) // the quotes stand there
	}
	return []byte(strings.NewReplacer("@BAWN@", place, "@AGENT@", agent, "@FLAGS@", more, "@SECONDS@", strconv.Itoa(patience)).Replace(b.String())), nil
}

var (
	errTheirs  = errors.New("it is not bawn's; move it away first, or let it call \"bawn hook\" itself")
	errChanged = errors.New("it has been changed since bawn wrote it; look at it, and remove it yourself")
)

// put is the file, unless another stands in its place.
func (t text) put(old []byte, bawn, agent string, flags ...string) ([]byte, error) {
	if old != nil && !bytes.Contains(old, []byte(mark)) {
		return nil, errTheirs
	}
	return t.is(bawn, agent, flags...)
}

// take is no file, unless it is not what put made, for whatever place of bawn's.
// Somebody else's stays.
func (t text) take(old []byte) ([]byte, error) {
	if old == nil || !bytes.Contains(old, []byte(mark)) {
		return old, nil
	}
	return nil, errChanged
}
