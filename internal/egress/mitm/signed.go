package mitm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sigv4"
)

const (
	// maxSkew is how far the time of a signature may be from ours. AWS takes a
	// quarter of an hour; clients whose clock is wrong follow its answers.
	maxSkew = time.Hour
	// unsignedTrailer is a body in chunks of which none is signed.
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

	sessionToken = "X-Amz-Security-Token"
	payloadHash  = "X-Amz-Content-Sha256"
)

// A signing is a request that the guest has signed with a placeholder, and
// that is signed anew with the value.
type signing struct {
	binding bawn.Binding
	stand   sigv4.Credential // the placeholder
	auth    sigv4.Authorization
	payload string // "" until the body has been hashed
	reading sigv4.Reading
}

// stands are the texts that a guest holds in place of a binding's value.
func stands(b bawn.Binding) [][]byte {
	if b.Place == bawn.Signed {
		if c, err := sigv4.ParseCredential([]byte(b.Placeholder)); err == nil {
			return c.Parts()
		}
	}
	return [][]byte{[]byte(b.Placeholder)}
}

// A pair is a value, and its placeholder.
type pair struct {
	value []byte
	stand string
}

// pairs are a use's value and placeholder, of an access key each part: a token
// that only the value has becomes the placeholder's secret.
func (u use) pairs() []pair {
	value, err := sigv4.ParseCredential(u.value)
	if u.binding.Place != bawn.Signed || err != nil {
		return []pair{{u.value, u.binding.Placeholder}}
	}
	var out []pair
	with := stands(u.binding)
	for i, v := range value.Parts() {
		out = append(out, pair{v, string(with[min(i, len(with)-1)])})
	}
	return out
}

// signatures finds a signature made with a placeholder, and returns the header
// without the parts that belong to it.
func (x *exchange) signatures(header http.Header) (http.Header, *Refusal) {
	var refusal *Refusal
	for _, b := range x.bound {
		if b.Place != bawn.Signed {
			continue
		}
		s, err := x.claim(b)
		if err != nil {
			refusal = misused(b, err.Error())
		}
		if s == nil {
			continue
		}
		x.signing, x.uses = s, append(x.uses, use{binding: b})
		rest := header.Clone()
		rest.Set("Authorization", s.auth.Line(nil, ""))
		rest.Del(sessionToken)
		return rest, nil
	}
	return header, refusal
}

// claim returns how a request is signed with a binding's placeholder, nil
// where it is not, or why it can't be signed anew.
func (x *exchange) claim(b bawn.Binding) (*signing, error) {
	stand, err := sigv4.ParseCredential([]byte(b.Placeholder))
	if err != nil {
		return nil, err
	}
	id, lines := string(stand.ID), x.in.Header["Authorization"]
	switch {
	case strings.Contains(x.request.Query, id) && strings.Contains(strings.ToLower(x.request.Query), "x-amz-credential="):
		return nil, errors.New("stands in an address that is signed itself (presigned), which is not signed anew: whoever has it may use it; sign in the Authorization header")
	case !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, id) }):
		return nil, nil
	case len(lines) > 1:
		return nil, errors.New("stands in one of several Authorization headers; want one")
	}
	s := &signing{binding: b, stand: stand}
	if s.auth, err = sigv4.ParseAuthorization(lines[0]); err != nil {
		return nil, err
	}
	if s.auth.ID != id {
		return nil, errors.New("is not the access key of the signature, but stands beside it")
	}
	if err := x.signable(s); err != nil {
		return nil, err
	}
	return s, nil
}

// signable refuses requests that are not signed anew, apart from the signature
// itself.
func (x *exchange) signable(s *signing) error {
	if err := inScope(s.binding.Name, s.auth); err != nil {
		return err
	}
	if err := cmp.Or(toCustomer(x.request.Host, s.auth), x.givesNoKey(s)); err != nil {
		return err
	}
	r := x.signed(x.in, s)
	if err := s.auth.Near(r, orElseNow(x.Now), maxSkew); err != nil {
		return err
	}
	if got := x.in.Header[sessionToken]; len(got) > 1 || strings.Join(got, "") != string(s.stand.Token) {
		return errors.New("stands beside the session token of another access key; the client has to use all that it finds in the session")
	}
	hashes := x.in.Header[payloadHash]
	if len(hashes) > 1 {
		return fmt.Errorf("stands in a request with %d headers %s; want one", len(hashes), payloadHash)
	}
	given := strings.Join(hashes, "")
	switch {
	case given == unsignedTrailer:
	case strings.HasPrefix(given, "STREAMING-"):
		return fmt.Errorf("has signed a body chunk by chunk (%.60s), which is not signed anew; have the client sign the whole body, or none of it (%s)", given, sigv4.Unsigned)
	}
	if s.auth.Covers(strings.ToLower(payloadHash)) {
		s.payload = given
	}
	return nil
}

// keyGivers are services whose answers contain keys or passwords, which can't be
// removed from them: a guest would hold a real one. The list is not complete; a
// binding that names its service does not depend on it.
var keyGivers = []string{
	"sts", "iam", "sso", "sso-oauth", "signin", "cognito-identity", "rolesanywhere", "eks-auth", "lakeformation", "datazone", "finspace", "finspace-api",
	"lightsail", "gamelift", "connect", "deadline", "codepipeline", "codeartifact", "ecr", "ecr-public", "redshift", "redshift-serverless", "iot", "iotsecuredtunneling",
}

// givesKey reports whether S3 answers a request with a key: CreateSession, and
// GetDataAccess of S3 Control. A query that can't be read may ask for it.
func givesKey(path, query string) bool {
	if path, err := url.PathUnescape(path); err != nil || strings.HasSuffix(strings.TrimRight(path, "/"), "/accessgrantsinstance/dataaccess") {
		return true
	}
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err != nil || strings.EqualFold(name, "session") {
			return true
		}
	}
	return false
}

// givesNoKey refuses requests that are answered with a key, unless the binding
// names that service.
func (x *exchange) givesNoKey(s *signing) error {
	_, named, _ := strings.Cut(s.binding.Name, "/")
	service, sessions := strings.ToLower(s.auth.Service), strings.EqualFold(named, "s3express")
	switch {
	case strings.HasPrefix(service, "s3") && !sessions && givesKey(x.request.Path, x.request.Query):
		return fmt.Errorf("has signed for what S3 answers with a key that the session would hold; a binding that names S3 Express allows it: bawn secret bind %s --aws='*/s3express'", s.binding.Secret)
	case named == s.auth.Service:
		return nil
	case slices.Contains(keyGivers, service):
		return fmt.Errorf("has signed for %q, which gives out keys that the session would hold; a binding that names it allows it: bawn secret bind %s --aws='*/%[1]s'", service, s.binding.Secret)
	}
	return nil
}

// customers are the labels of hosts below amazonaws.com that AWS runs for a customer, who
// may be anybody and may see what is sent there. Each has the one service whose
// signatures go there, since no other accepts them, or "" for none. The list is not
// complete; a binding that names its host does not depend on it.
var customers = map[string]string{
	"execute-api": "execute-api", "appsync-api": "appsync", "appsync-realtime-api": "appsync", "es": "es", "aoss": "aoss",
	"airflow": "airflow", "grafana-workspace": "grafana", "mq": "", "elb": "", "compute": "", "compute-1": "",
}

// toCustomer refuses signatures that a customer of AWS could hand on to another service.
func toCustomer(host string, a sigv4.Authorization) error {
	below, is := strings.CutSuffix(strings.TrimSuffix(host, ".cn"), ".amazonaws.com")
	labels := strings.Split(below, ".")
	if !is || strings.HasPrefix(labels[len(labels)-1], "s3") { // before it stands a bucket's name
		return nil
	}
	for _, label := range labels[max(0, len(labels)-2):] { // ID.LABEL.REGION or ID.REGION.LABEL
		if service, is := customers[label]; is && !strings.EqualFold(a.Service, service) {
			return fmt.Errorf("has signed for the service %q at %q, a host of a customer of AWS, which may be anybody's; want %s", a.Service, host, cmp.Or(service, "no signature"))
		}
	}
	return nil
}

// inScope wants the region and the service that a binding names, as
// REGION/SERVICE with "*" for any.
func inScope(name string, a sigv4.Authorization) error {
	region, service, _ := strings.Cut(name, "/")
	if region != "" && region != "*" && region != a.Region {
		return fmt.Errorf("has signed for the region %q; it is bound to %q", a.Region, region)
	}
	if service != "" && service != "*" && service != a.Service {
		return fmt.Errorf("has signed for the service %q; it is bound to %q", a.Service, service)
	}
	return nil
}

// signed is a request as a signature speaks of it.
func (x *exchange) signed(r *http.Request, s *signing) sigv4.Request {
	return sigv4.Request{
		Method: x.in.Method, Path: x.request.Path, Query: x.request.Query, Host: r.Host, Length: r.ContentLength, Header: r.Header, Payload: s.payload,
	}
}

// verify requires the guest's own signature to be right: made with the
// placeholder, over the request that is sent.
func (x *exchange) verify() *Refusal {
	s := x.signing
	if s == nil {
		return nil
	}
	if s.payload == "" {
		if refusal := x.hash(); refusal != nil {
			return refusal
		}
	}
	var err error
	if s.reading, err = s.auth.Verify(x.signed(x.in, s), s.stand.Secret); err != nil {
		return misused(s.binding, err.Error())
	}
	return nil
}

// hash holds the body back until it has been hashed, and looked through.
func (x *exchange) hash() *Refusal {
	sum, from := sha256.New(), x.sent()
	if from != nil {
		h := &held{busy: x.holding}
		if _, err := io.Copy(io.MultiWriter(h, sum), from); err != nil {
			_ = h.Close()
			if refusal := x.refused.Load(); refusal != nil {
				return refusal
			}
			x.result.Err = err
			return &Refusal{
				Status: http.StatusRequestEntityTooLarge, Rule: "secret", close: true,
				Reason: "the body could not be held to sign it: " + err.Error(),
				Remedy: "have the client send " + payloadHash + ", as it does for S3, so that it need not be held",
			}
		}
		r := x.in.WithContext(x.in.Context())
		if x.judged != nil {
			r = x.judged
			_ = r.Body.Close()
		}
		r.Body, x.judged = h, r
	}
	x.signing.payload = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// sent is the body that goes out, or nil if the request has no body.
func (x *exchange) sent() io.Reader {
	switch {
	case x.judged != nil && x.judged.Body != nil:
		return x.judged.Body
	case x.request.body != nil:
		return x.request.body
	}
	return nil
}

// resign signs the outgoing request with the value.
func (x *exchange) resign(out *http.Request) error {
	s, u := x.signing, x.uses[slices.IndexFunc(x.uses, func(u use) bool { return u.binding.Place == bawn.Signed })]
	key, err := sigv4.ParseCredential(u.value)
	if err != nil {
		return fmt.Errorf("secret %q: %w", u.binding.Secret, err)
	}
	out.Header.Del("Authorization")
	out.Header.Del(sessionToken)
	a := s.auth
	a.Signed = slices.Clone(a.Signed)
	if token := strings.ToLower(sessionToken); len(key.Token) > 0 {
		out.Header.Set(sessionToken, string(key.Token))
		if at, has := slices.BinarySearch(a.Signed, token); !has {
			a.Signed = slices.Insert(a.Signed, at, token)
		}
	}
	r := x.signed(out, s)
	a.Signed = slices.DeleteFunc(a.Signed, func(name string) bool { return !r.Has(name) }) // what is not forwarded
	signature, err := a.Sign(r, key.Secret, s.reading)
	if err != nil {
		return fmt.Errorf("secret %q: %w", u.binding.Secret, err)
	}
	out.Header.Set("Authorization", a.Line(key.ID, signature))
	x.echo = x.told.of(x.target, x.bound).also(pair{[]byte(signature), s.auth.Signature})
	return nil
}

func orElseNow(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}
