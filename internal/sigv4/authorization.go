package sigv4

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	ending    = "aws4_request"
	stamp     = "20060102T150405Z"

	maxAuthorization = 8 << 10 // bytes
	maxSigned        = 100     // headers
)

// An Authorization is the header of a signed request.
type Authorization struct {
	ID        string // of the access key
	Date      string // of the scope: YYYYMMDD
	Region    string
	Service   string
	Signed    []string // names of the signed headers: lower case, in order, each once
	Signature string   // 64 lower-case hex digits
}

// ParseAuthorization reads the value of an Authorization header:
//
//	AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b, Signature=HEX
//
// ("Create a signed AWS API request", step 5). Every other algorithm is an
// error, and so is a signature that does not cover the host: it would be good
// elsewhere. Errors are written to stand behind the word "placeholder".
func ParseAuthorization(line string) (Authorization, error) {
	name, rest, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(name, "AWS4-ECDSA-"):
		return Authorization{}, errors.New("has signed with Signature Version 4A (for several regions), which is not signed anew; want Version 4: name one region")
	case name != algorithm || len(line) > maxAuthorization:
		return Authorization{}, fmt.Errorf("stands in an Authorization header that does not begin with %q", algorithm)
	}
	var a Authorization
	seen := map[string]bool{}
	for field := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		if seen[key] {
			return Authorization{}, fmt.Errorf("stands in an Authorization header with two fields %q", key)
		}
		seen[key] = true
		if err := a.field(key, value); err != nil {
			return Authorization{}, err
		}
	}
	if a.ID == "" || a.Signed == nil || a.Signature == "" {
		return Authorization{}, errors.New("stands in an Authorization header that is not complete; want Credential, SignedHeaders and Signature")
	}
	return a, nil
}

func (a *Authorization) field(key, value string) error {
	switch key {
	case "Credential":
		return a.scope(value)
	case "SignedHeaders":
		return a.headers(value)
	case "Signature":
		if len(value) != 64 || strings.Trim(value, "0123456789abcdef") != "" {
			return errors.New("stands beside a signature that is not one of 64 hex digits")
		}
		a.Signature = value
		return nil
	}
	return fmt.Errorf("stands in an Authorization header with the field %.40q; want Credential, SignedHeaders and Signature", key)
}

func (a *Authorization) scope(value string) error {
	p := strings.Split(value, "/")
	if len(p) != 5 || p[4] != ending || slices.Contains(p, "") || !all([]byte(p[2]+p[3]), inScope) {
		return errors.New("stands in a credential with another scope; want ID/DATE/REGION/SERVICE/" + ending)
	}
	if _, err := time.Parse("20060102", p[1]); err != nil {
		return fmt.Errorf("stands in a credential of the date %.20q; want YYYYMMDD", p[1])
	}
	a.ID, a.Date, a.Region, a.Service = p[0], p[1], p[2], p[3]
	return nil
}

// inScope reports whether a region or a service may have the character: both
// go into a header of ours.
func inScope(b byte) bool { return alnum(b) || b == '-' || b == '_' || b == '.' }

func (a *Authorization) headers(value string) error {
	names := strings.Split(value, ";")
	for i, n := range names {
		if n == "" || n != strings.ToLower(n) || !all([]byte(n), inScope) || i > 0 && names[i-1] >= n {
			return errors.New("stands beside signed headers that are not in order; want their names in lower case, sorted, each once")
		}
	}
	if len(names) > maxSigned {
		return fmt.Errorf("stands beside %d signed headers; want %d at most", len(names), maxSigned)
	}
	if !slices.Contains(names, "host") {
		return errors.New("stands beside a signature that does not cover the host; want \"host\" among the signed headers")
	}
	a.Signed = names
	return nil
}

// Covers reports whether the signature covers a header, named in lower case.
func (a Authorization) Covers(name string) bool { return slices.Contains(a.Signed, name) }

// Line writes the header for the access key id with another signature.
func (a Authorization) Line(id []byte, signature string) string {
	return fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s", algorithm, id, a.scopeText(), strings.Join(a.Signed, ";"), signature)
}

func (a Authorization) scopeText() string {
	return strings.Join([]string{a.Date, a.Region, a.Service, ending}, "/")
}

// Near refuses a request whose time is further from now than it may be, or on
// another day than the scope.
func (a Authorization) Near(r Request, now time.Time, most time.Duration) error {
	at, err := r.time()
	if err != nil {
		return err
	}
	if at.Format("20060102") != a.Date {
		return fmt.Errorf("stands in a credential of %s beside the time %s; want the same day", a.Date, at.Format(stamp))
	}
	if d := now.Sub(at); d > most || d < -most {
		return fmt.Errorf("has signed for the time %s, and now it is %s: nothing is signed for later; set the clock", at.Format(stamp), now.UTC().Format(stamp))
	}
	return nil
}
