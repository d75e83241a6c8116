package mitm

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// A Credential is one that the guest has put into a request by itself.
type Credential struct {
	Where string // the header in lower case, or "?" and the parameter
	Value string // for a digest; it is not logged
}

// credentialHeaders are those that carry nothing else, and the ends of the names
// of others.
var (
	credentialHeaders = []string{"authorization", "proxy-authorization", "cookie", "x-auth-key"}
	credentialEnds    = []string{"-token", "api-key", "apikey", "-secret", "-password", "-authorization"}
	harmlessHeaders   = []string{"csrf", "xsrf"} // in tokens that are no credential
)

// credentialParameters are those of a query.
var credentialParameters = []string{
	"token", "access_token", "auth_token", "private_token", "job_token", "oauth_token", "id_token", "refresh_token", "api_key", "apikey", "api-key", "key",
	"auth", "password", "passwd", "secret", "client_secret",
}

// foreign finds the credentials of a request that the session has not put in.
// header and query are without placeholders.
func (x *exchange) foreign(header http.Header, query string) (found []Credential) {
	for name, lines := range header {
		name = strings.ToLower(name)
		if !carriesCredential(name) || name == "authorization" && x.lentAuthorization() {
			continue
		}
		for _, line := range lines {
			for _, value := range x.credentials(name, line) {
				found = append(found, Credential{name, value})
			}
		}
	}
	found = append(found, inParameters(query)...)
	slices.SortFunc(found, func(a, b Credential) int { return strings.Compare(a.Where+"\x00"+a.Value, b.Where+"\x00"+b.Value) })
	return slices.Compact(found)
}

func carriesCredential(name string) bool {
	has := func(part string) bool { return strings.Contains(name, part) }
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	return slices.Contains(credentialHeaders, name) || slices.ContainsFunc(credentialEnds, ends) && !slices.ContainsFunc(harmlessHeaders, has)
}

// lentAuthorization reports whether the one Authorization is a secret of the
// session's.
func (x *exchange) lentAuthorization() bool {
	return slices.ContainsFunc(x.uses, func(u use) bool {
		return u.binding.Place == bawn.Bearer || u.binding.Place == bawn.Basic || u.binding.Place == bawn.Signed
	})
}

// credentials are those in a header's line: of cookies only those that the host
// has not set itself, and nothing if only a scheme is left.
func (x *exchange) credentials(name, line string) (values []string) {
	switch name {
	case "cookie":
		for pair := range strings.SplitSeq(line, ";") {
			if pair = strings.TrimSpace(pair); pair != "" && !x.cookies.has(x.target.Host, pair) {
				values = append(values, pair)
			}
		}
	case "authorization", "proxy-authorization":
		if scheme, rest, found := strings.Cut(line, " "); !found && scheme != "" || strings.TrimSpace(rest) != "" {
			values = append(values, line)
		}
	default:
		if strings.TrimSpace(line) != "" {
			values = append(values, line)
		}
	}
	return values
}

func inParameters(query string) (found []Credential) {
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if n, err := url.QueryUnescape(name); err == nil {
			name = n
		}
		if name = strings.ToLower(name); value != "" && slices.Contains(credentialParameters, name) {
			found = append(found, Credential{"?" + name, value})
		}
	}
	return found
}

// cookieJar knows which cookies hosts have set in this session: a guest that sends
// one back brings nothing along. Beyond the limit they are taken for the guest's
// own.
type cookieJar struct {
	mu   sync.Mutex
	seen map[string]bool
}

const (
	maxCookies = 4096
	maxCookie  = 4096
)

func (j *cookieJar) has(host, pair string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen[host+"\x00"+pair]
}

// set records the cookies that a host's answer sets.
func (j *cookieJar) set(host string, h http.Header) {
	for _, line := range h.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(line, ";")
		pair = strings.TrimSpace(pair)
		j.mu.Lock()
		if len(j.seen) < maxCookies && len(pair) <= maxCookie {
			if j.seen == nil {
				j.seen = map[string]bool{}
			}
			j.seen[host+"\x00"+pair] = true
		}
		j.mu.Unlock()
	}
}
