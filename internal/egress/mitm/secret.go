package mitm

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sigv4"
)

// minPlaceholder is how long a placeholder is at least: a shorter one could
// stand somewhere by chance.
const minPlaceholder = 12

// longestValue is how long a value may be, in bytes: its forms are kept in memory.
const longestValue = 4 << 10

// usable returns the error in a binding, or nil.
func usable(b bawn.Binding) error {
	named := b.Place == bawn.Header || b.Place == bawn.InQuery
	_, unsigned := sigv4.ParseCredential([]byte(b.Placeholder))
	switch {
	case b.Secret == "":
		return errors.New("a binding names no secret")
	case len(b.Placeholder) < minPlaceholder || strings.ContainsFunc(b.Placeholder, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("secret %q: want a placeholder of %d or more printable ASCII characters without blanks", b.Secret, minPlaceholder)
	case b.Place < bawn.Header || b.Place > bawn.Signed:
		return fmt.Errorf("secret %q: the binding has no place", b.Secret)
	case named && b.Name == "":
		return fmt.Errorf("secret %q: want the name of the %s it is put in", b.Secret, b.Place)
	case b.Place == bawn.Signed && unsigned != nil:
		return fmt.Errorf("secret %q: the placeholder: %w", b.Secret, unsigned)
	}
	return nil
}

// A use is a placeholder that stands where its binding permits it.
type use struct {
	binding bawn.Binding
	value   []byte // lent; not ours to overwrite
	added   bool   // the guest has no placeholder: see Server.Offer
}

// find returns how the placeholders of bindings are used in a request, and the
// request's header and query without them: the rest must hold none.
func find(bindings []bawn.Binding, header http.Header, query string) (uses []use, restHeader http.Header, restQuery string) {
	restHeader, restQuery = header, query
	for _, b := range bindings {
		found := false
		if b.Place == bawn.Signed { // exchange.signatures
			continue
		}
		if b.Place == bawn.InQuery {
			restQuery, found = inQuery(b, restQuery, "")
		} else {
			restHeader, found = inHeader(b, restHeader, "")
		}
		if found {
			uses = append(uses, use{binding: b})
		}
	}
	return uses, restHeader, restQuery
}

// put replaces the placeholder of a use by its value, except where it is
// signed with.
func (u use) put(header http.Header, query string) (http.Header, string) {
	if u.added && u.binding.Place == bawn.InQuery {
		return header, strings.TrimPrefix(query+"&", "&") + url.QueryEscape(u.binding.Name) + "=" + url.QueryEscape(string(u.value))
	}
	if u.added {
		header = header.Clone()
		header.Set(u.line())
		return header, query
	}
	if u.binding.Place == bawn.Signed {
		return header, query
	}
	if u.binding.Place == bawn.InQuery {
		query, _ = inQuery(u.binding, query, string(u.value))
		return header, query
	}
	header, _ = inHeader(u.binding, header, string(u.value))
	return header, query
}

// line is the header in which a binding's value goes, with the value.
func (u use) line() (name, value string) {
	switch b := u.binding; b.Place {
	case bawn.Header:
		return b.Name, string(u.value)
	case bawn.Basic:
		user := cmp.Or(b.Name, "x-access-token")
		return "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+string(u.value)))
	default:
		return "Authorization", "Bearer " + string(u.value)
	}
}

// inHeader returns a header in which value stands for b's placeholder in the
// place of b, and whether it was there. The header itself is not changed.
func inHeader(b bawn.Binding, header http.Header, value string) (http.Header, bool) {
	key := "Authorization"
	if b.Place == bawn.Header {
		key = textproto.CanonicalMIMEHeaderKey(b.Name)
	}
	old := header[key]
	var lines []string
	for i, line := range old {
		if with, ok := inLine(b, line, value); ok && (b.Place == bawn.Header || len(old) == 1) {
			if lines == nil {
				lines = slices.Clone(old)
			}
			lines[i] = with
		}
	}
	if lines == nil {
		return header, false
	}
	out := make(http.Header, len(header))
	for k, v := range header {
		out[k] = v
	}
	out[key] = lines
	return out, true
}

func inLine(b bawn.Binding, line, value string) (string, bool) {
	scheme, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch b.Place {
	case bawn.Header:
		return strings.ReplaceAll(line, b.Placeholder, value), strings.Contains(line, b.Placeholder)
	case bawn.Bearer:
		known := strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "token") // GitHub's own word for it
		return scheme + " " + value, known && rest == b.Placeholder
	case bawn.Basic:
		return inBasic(b, scheme, rest, value)
	}
	return line, false
}

// inBasic replaces the password (RFC 7617). The user has to be the binding's,
// where it names one.
func inBasic(b bawn.Binding, scheme, rest, value string) (string, bool) {
	if !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(rest)
	user, password, _ := strings.Cut(string(plain), ":")
	if err != nil || password != b.Placeholder || b.Name != "" && user != b.Name {
		return "", false
	}
	return scheme + " " + base64.StdEncoding.EncodeToString([]byte(user+":"+value)), true
}

// inQuery returns a raw query in which value stands for b's placeholder as the
// whole value of the parameter of b. Everything else stays byte for byte.
func inQuery(b bawn.Binding, query, value string) (string, bool) {
	found := false
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, given, _ := strings.Cut(part, "=")
		n, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(given)
		if err1 == nil && err2 == nil && n == b.Name && v == b.Placeholder {
			parts[i] = name + "=" + url.QueryEscape(value)
			found = true
		}
	}
	return strings.Join(parts, "&"), found
}

// lend gets the values of uses. A secret that can't be lent can't be sent.
func (s *Server) lend(ctx context.Context, uses []use) error {
	if s.Secrets == nil {
		return fmt.Errorf("secret %q: the session has no vault", uses[0].binding.Secret)
	}
	for i, u := range uses {
		secret, err := s.Secrets.Lend(ctx, s.Session, u.binding)
		if err != nil {
			return fmt.Errorf("secret %q: %w", u.binding.Secret, err)
		}
		value := secret.Reveal()
		if err := sendable(u.binding, value); err != nil {
			return err
		}
		uses[i].value = value
	}
	return nil
}

// sendable refuses values that would change a request's structure, or that
// could not be found again in a response.
func sendable(b bawn.Binding, value []byte) error {
	if b.Place == bawn.Signed {
		if _, err := sigv4.ParseCredential(value); err != nil {
			return fmt.Errorf("secret %q: %w", b.Secret, err)
		}
		return nil
	}
	if len(value) < shortest {
		return fmt.Errorf("secret %q has fewer than %d bytes, which could not be told from other text in a response", b.Secret, shortest)
	}
	if len(value) > longestValue {
		return fmt.Errorf("secret %q has more than %d bytes", b.Secret, longestValue)
	}
	control := func(c byte) bool { return c < ' ' || c == 0x7f }
	if (b.Place == bawn.Header || b.Place == bawn.Bearer) && slices.ContainsFunc(value, control) {
		return fmt.Errorf("secret %q holds a control character, which can't stand in a header", b.Secret)
	}
	return nil
}

// names returns the secrets' names, each once.
func names(uses []use) []string {
	var out []string
	for _, u := range uses {
		if !slices.Contains(out, u.binding.Secret) {
			out = append(out, u.binding.Secret)
		}
	}
	return out
}

// misplaced returns the index of the binding whose placeholder stands in a
// request's line or header, or -1. Names of headers are compared without
// case: on their way here they lose their own.
func (s *Server) misplaced(path, query string, header http.Header) int {
	if s.placeholders.longest == 0 {
		return -1
	}
	text := make([]byte, 0, 2<<10)
	text = append(append(append(text, path...), '\n'), query...)
	for name, lines := range header {
		for _, l := range lines {
			text = append(append(text, '\n'), l...)
		}
		for i, lowered := range s.lowered {
			for _, stand := range lowered {
				if len(name) >= len(stand) && strings.Contains(strings.ToLower(name), stand) {
					return i
				}
			}
		}
	}
	return s.sought(text)
}

// sought returns the index of the binding whose placeholder stands in a text
// that is there as a whole, or -1.
func (s *Server) sought(text []byte) int {
	if which := newScanner(s.placeholders).feed(text); which >= 0 {
		return s.placeholders.owner[which]
	}
	return -1
}
