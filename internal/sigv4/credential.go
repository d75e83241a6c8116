package sigv4

import (
	"bytes"
	"errors"
)

// MaxToken is the longest session token in bytes.
const MaxToken = 4 << 10

// A Credential is an access key, in parts of the text it was read from: who
// clears that clears it. The zero Credential signs nothing that anybody accepts.
type Credential struct {
	ID     []byte // 16 to 128 letters, digits and underscores
	Secret []byte
	Token  []byte // of a session; nil where the key is a lasting one
}

var errCredential = errors.New("it is no access key; want ID:SECRET or ID:SECRET:TOKEN, as \"bawn secret set NAME --aws\" writes it")

// ParseCredential reads ID:SECRET or ID:SECRET:TOKEN, the form in which the
// vault keeps an access key: none of the parts can hold a colon. The errors
// quote nothing of it.
func ParseCredential(text []byte) (Credential, error) {
	parts := bytes.SplitN(text, []byte(":"), 4)
	if len(parts) != 2 && len(parts) != 3 {
		return Credential{}, errCredential
	}
	c := Credential{ID: parts[0], Secret: parts[1]}
	if len(parts) == 3 {
		c.Token = parts[2]
	}
	word := func(b byte) bool { return alnum(b) || b == '_' }
	opaque := func(b byte) bool { return alnum(b) || bytes.IndexByte([]byte("+/=-_.~"), b) >= 0 }
	switch {
	case len(c.ID) < 16 || len(c.ID) > 128 || !all(c.ID, word),
		len(c.Secret) < 16 || len(c.Secret) > 256 || !all(c.Secret, opaque),
		len(parts) == 3 && (len(c.Token) < 16 || len(c.Token) > MaxToken || !all(c.Token, opaque)):
		return Credential{}, errCredential
	}
	return c, nil
}

// Text is what ParseCredential reads.
func (c Credential) Text() []byte {
	text := make([]byte, 0, len(c.ID)+len(c.Secret)+len(c.Token)+2)
	text = append(append(append(text, c.ID...), ':'), c.Secret...)
	if len(c.Token) > 0 {
		text = append(append(text, ':'), c.Token...)
	}
	return text
}

// Parts are the credential's parts that are there: two or three.
func (c Credential) Parts() [][]byte {
	if len(c.Token) == 0 {
		return [][]byte{c.ID, c.Secret}
	}
	return [][]byte{c.ID, c.Secret, c.Token}
}

func alnum(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

func all(text []byte, ok func(byte) bool) bool {
	for _, b := range text {
		if !ok(b) {
			return false
		}
	}
	return true
}
