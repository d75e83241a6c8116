package mitm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sigv4"
)

const (
	realID, realSecret, realToken    = "AKIAREALREALREAL1234", "real+secret/of/forty/characters/01234567", "IQoJrealtokenrealtoken/real+token==" //nolint:gosec // keys of nobody
	standID, standSecret, standToken = "AKIASTANDSTAND567890", "stand+secret/of/forty/characters/7654321", "IQoJstandtokenstandtok/stan+token=="
	signTime                         = "20260301T101500Z"
)

var signNow = time.Date(2026, 3, 1, 10, 15, 0, 0, time.UTC)

// An awsKey is what a client signs with.
type awsKey struct{ id, secret, token string }

// bindSigned binds an access key to the target's host.
func bindSigned(name string, stand, real awsKey) func(*rig) {
	join := func(k awsKey) string { return strings.TrimSuffix(k.id+":"+k.secret+":"+k.token, ":") }
	return func(r *rig) {
		bind(bawn.Signed, name)(r)
		r.Bindings[0].Placeholder = join(stand)
		r.Secrets = vault{value: join(real)}
		r.Now = func() time.Time { return signNow }
	}
}

func sha256Hex(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// signWith signs a request as a client does: it covers host, X-Amz-* and what
// else is named.
func signWith(t testing.TB, q *http.Request, body string, key awsKey, also ...string) {
	t.Helper()
	if key.token != "" {
		q.Header.Set(sessionToken, key.token)
	}
	if q.Header.Get("X-Amz-Date") == "" {
		q.Header.Set("X-Amz-Date", signTime)
	}
	signed := append([]string{"host"}, also...)
	for name := range q.Header {
		if strings.HasPrefix(name, "X-Amz-") {
			signed = append(signed, strings.ToLower(name))
		}
	}
	resort(signed)
	date, _, _ := strings.Cut(q.Header.Get("X-Amz-Date"), "T")
	a, err := sigv4.ParseAuthorization("AWS4-HMAC-SHA256 Credential=" + key.id + "/" + date + "/eu-central-1/sqs/aws4_request, SignedHeaders=" + strings.Join(signed, ";") + ", Signature=" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	payload := q.Header.Get(payloadHash)
	if payload == "" {
		payload = sha256Hex(body)
	}
	r := sigv4.Request{Method: q.Method, Path: q.URL.EscapedPath(), Query: q.URL.RawQuery, Host: host, Length: int64(len(body)), Header: q.Header, Payload: payload}
	signature, err := a.Sign(r, []byte(key.secret), sigv4.Twice)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", a.Line([]byte(key.id), signature))
}

func resort(names []string) {
	for i := range names {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
}

// An awsServer verifies signatures as AWS does, with the one key it knows. It
// answers with what it knows of the request, which a hostile one may.
type awsServer struct {
	key awsKey
	saw
}

func (s *awsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fmt.Fprintf(&s.saw, "%s %s %v %q\n", r.Method, r.RequestURI, r.Header, body)
	a, err := sigv4.ParseAuthorization(r.Header.Get("Authorization"))
	payload := r.Header.Get(payloadHash)
	if payload == "" {
		payload = sha256Hex(string(body))
	}
	q := sigv4.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Length: r.ContentLength, Header: r.Header, Payload: payload}
	if err == nil {
		_, err = a.Verify(q, []byte(s.key.secret))
	}
	if a.ID != s.key.id || err != nil || r.Header.Get(sessionToken) != s.key.token {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "SignatureDoesNotMatch: %s %v", a.ID, err)
		return
	}
	w.Header().Set("X-Seen", a.Signature)
	fmt.Fprintf(w, "welcome %s %s %s %s", a.ID, a.Signature, r.Header.Get(sessionToken), r.Header.Get("Range"))
}

func TestSignedAnew(t *testing.T) {
	lasting, session := awsKey{realID, realSecret, ""}, awsKey{realID, realSecret, realToken}
	stand, standSession := awsKey{standID, standSecret, ""}, awsKey{standID, standSecret, standToken}
	long := strings.Repeat("0123456789abcdef", 200<<10) // more than is held in memory
	for _, tt := range []struct {
		name, method, path, body string
		stand, real              awsKey
		header                   []string
		also                     []string
	}{
		{"get", "GET", "/", "", stand, lasting, nil, nil},
		{"query", "GET", "/?b=2&a=1%2F&c", "", stand, lasting, nil, nil},
		{"path", "GET", "/a%20b/%C3%BC:x", "", stand, lasting, nil, nil},
		{"range", "GET", "/x", "", stand, lasting, []string{"Range", "bytes=1-2"}, []string{"range"}},
		{"packed answer", "GET", "/x", "", stand, lasting, []string{"Accept-Encoding", "gzip"}, []string{"accept-encoding"}},
		{"body", "POST", "/", "Action=ListQueues", stand, lasting, nil, []string{"content-length"}},
		{"long body", "POST", "/", long, stand, lasting, nil, nil},
		{"hash", "PUT", "/x", "text", stand, lasting, []string{payloadHash, sha256Hex("text")}, nil},
		{"unsigned", "PUT", "/x", "text", stand, lasting, []string{payloadHash, sigv4.Unsigned}, nil},
		{"chunks", "PUT", "/x", "4\r\ntext\r\n0\r\n\r\n", stand, lasting, []string{payloadHash, unsignedTrailer, "Content-Encoding", "aws-chunked"}, nil},
		{"session", "GET", "/", "", standSession, session, nil, nil},
		{"session since", "GET", "/", "", stand, session, nil, nil},
		{"session no more", "GET", "/", "", standSession, lasting, nil, nil},
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", tt.name, h2), func(t *testing.T) {
				server := &awsServer{key: tt.real}
				r := newRig(t, server, bindSigned("eu-central-1/sqs", tt.stand, tt.real))
				q := request(t, tt.method, r.url(tt.path), bytes.NewReader([]byte(tt.body)), tt.header...)
				signWith(t, q, tt.body, tt.stand, tt.also...)
				own := q.Header.Get("Authorization")
				res, text := r.do(r.client(h2), q)
				if res.StatusCode != 200 || !strings.HasPrefix(text, "welcome "+standID+" ") {
					t.Fatalf("%d %q; the server saw %.600q", res.StatusCode, text, &server.saw)
				}
				for _, v := range append([]string{realID, realSecret, realToken}, lastWords(server.String())...) {
					if v != "" && strings.Contains(text+fmt.Sprint(res.Header), v) {
						t.Errorf("the guest gets %q in %q", v, text)
					}
				}
				if !strings.Contains(own, res.Header.Get("X-Seen")) {
					t.Errorf("the echo of the signature is %q, want the guest's own of %q", res.Header.Get("X-Seen"), own)
				}
				if seen := server.String(); strings.Contains(seen, standID) || strings.Contains(seen, standSecret) || strings.Contains(seen, standToken) || strings.Contains(seen, realSecret) {
					t.Errorf("the server saw %.600q", seen)
				}
				if got := r.result(); fmt.Sprint(got.Secrets) != "[token]" || strings.Contains(fmt.Sprint(got, r.asked), realID) {
					t.Errorf("result %+v", got)
				}
				if tt.name == "range" && !strings.HasSuffix(text, "bytes=1-2") {
					t.Errorf("the range is gone: %q", text)
				}
			})
		}
	}
	// Control: without Bawn the placeholder is refused, and the key is taken.
	for _, key := range []awsKey{stand, lasting} {
		server := &awsServer{key: lasting}
		r := newRig(t, server, func(r *rig) { bindSigned("", standSession, lasting)(r); r.Bindings = nil })
		q := request(t, "GET", r.url("/"), nil)
		signWith(t, q, "", key)
		if res, text := r.do(r.client(false), q); (res.StatusCode == 200) != (key == lasting) {
			t.Errorf("control: %d %q", res.StatusCode, text)
		}
	}
}

// lastWords are the signatures that a server has seen.
func lastWords(seen string) []string {
	var out []string
	for _, part := range strings.Split(seen, "Signature=")[1:] {
		out = append(out, part[:64])
	}
	return out
}

// TestNotSignedAnew: each of these goes to nobody, and the guest reads why.
func TestNotSignedAnew(t *testing.T) {
	stand := awsKey{standID, standSecret, ""}
	for _, tt := range []struct {
		name   string
		before func(*http.Request) // signed
		after  func(*http.Request)
		bound  string
		body   string
		why    string // "" passes
	}{
		{name: "control"},
		{name: "control: any", bound: "*/*"},
		{name: "control: region", bound: "eu-central-1"},
		{name: "chunks", before: set(payloadHash, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), why: "chunk by chunk"},
		{name: "chunks with a trailer", before: set(payloadHash, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"), why: "chunk by chunk"},
		{name: "chunks, not covered", after: set(payloadHash, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), why: "chunk by chunk"},
		{name: "4A", after: replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), why: "Version 4A"},
		{name: "presigned", after: func(q *http.Request) {
			q.Header.Del("Authorization")
			q.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + standID + "%2F20260301%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Signature=00"
		}, why: "presigned"},
		{name: "another day", after: replace("/20260301/", "/20260302/"), why: "the same day"},
		{name: "later", before: set("X-Amz-Date", "20260303T101500Z"), why: "for later"},
		{name: "another region", bound: "us-east-1/sqs", why: `for the region "eu-central-1"`},
		{name: "another service", bound: "*/s3", why: `for the service "sqs"`},
		{name: "a service of keys", after: replace("/sqs/", "/sts/"), why: "gives out keys"},
		{name: "a service of keys, any bound", bound: "*/*", after: replace("/sqs/", "/iam/"), why: "gives out keys"},
		{name: "control: a service of keys that is named", bound: "*/sts", after: replace("/sqs/", "/sts/"), why: "not made with it"},
		{name: "a service of keys, written otherwise", bound: "*/*", after: replace("/sqs/", "/STS/"), why: "gives out keys"},
		{name: "a session of S3, which is named", bound: "*/s3", after: func(q *http.Request) {
			replace("/sqs/", "/s3/")(q)
			q.URL.RawQuery = "session"
		}, why: "answers with a key"},
		{name: "a session of S3", after: func(q *http.Request) {
			replace("/sqs/", "/s3/")(q)
			q.URL.RawQuery = "session"
		}, why: "answers with a key"},
		{name: "a session of S3, escaped", after: func(q *http.Request) {
			replace("/sqs/", "/s3/")(q)
			q.URL.RawQuery = "x=y&%73ession="
		}, why: "answers with a key"},
		{name: "access to data by S3 Control", after: func(q *http.Request) {
			replace("/sqs/", "/s3/")(q)
			q.URL.Path, q.URL.RawPath = "/v20180820/accessgrantsinstance/dataaccess", "/v20180820/accessgrantsinstance/data%61ccess"
		}, why: "answers with a key"},
		{name: "control: an object of S3", after: func(q *http.Request) {
			replace("/sqs/", "/s3/")(q)
			q.URL.RawQuery = "sessions=1"
		}, why: "not made with it"},
		{name: "a wrong signature", after: replace("Signature=", "Signature=0"), why: "64 hex"},
		{name: "another method", after: func(q *http.Request) { q.Method = "PUT" }, why: "not made with it"},
		{name: "another path", after: func(q *http.Request) { q.URL.Path = "/x" }, why: "not made with it"},
		{name: "another body", after: func(q *http.Request) { q.Body = io.NopCloser(strings.NewReader("Action=x")) }, body: "Action=y", why: "not made with it"},
		{name: "another header", before: set("X-Amz-Target", "a"), after: set("X-Amz-Target", "b"), why: "not made with it"},
		{name: "host not covered", after: replace("=host;", "="), why: "does not cover the host"},
		{name: "another token", before: set(sessionToken, standToken), why: "session token of another"},
		{name: "two lines", after: func(q *http.Request) { q.Header.Add("Authorization", "Bearer x") }, why: "several"},
		{name: "the secret in a header", after: set("X-Key", standSecret), why: "may not be put"},
		{name: "the secret in the region", after: replace("/eu-central-1/", "/"+strings.ReplaceAll(standSecret, "/", ".")+"/"), why: "another scope"},
		{name: "the id in a header", after: set("X-Key", standID), why: "may not be put"},
		{name: "the id in a parameter", after: func(q *http.Request) { q.URL.RawQuery = "AccessKeyId=" + standID }, why: "may not be put"},
		{name: "the secret in the body", body: "a=" + standSecret, why: "stands in a body"},
		{name: "the id in the body", body: "a=" + standID, why: "stands in a body"},
		{name: "as a token", after: func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+standID) }, why: "does not begin with"},
		{name: "a date that is not forwarded", after: set("Connection", "X-Amz-Date"), why: "without a time"},
		{name: "a signed header that is not forwarded", before: set("X-Amz-Target", "a"), after: set("Connection", "X-Amz-Target"), why: "does not have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := &awsServer{key: awsKey{realID, realSecret, ""}}
			r := newRig(t, server, bindSigned(tt.bound, stand, server.key))
			method := "GET"
			if tt.body != "" {
				method = "POST"
			}
			q := request(t, method, r.url("/"), strings.NewReader(tt.body))
			if tt.before != nil {
				tt.before(q)
			}
			signWith(t, q, tt.body, stand)
			if tt.after != nil {
				tt.after(q)
			}
			res, text := r.do(r.client(false), q)
			if tt.why == "" {
				if res.StatusCode != 200 {
					t.Errorf("%d %q", res.StatusCode, text)
				}
				return
			}
			text = html.UnescapeString(text)
			if res.StatusCode != 403 || !strings.Contains(text, tt.why) || !strings.Contains(text, `"token"`) {
				t.Errorf("%d %q, want %q", res.StatusCode, text, tt.why)
			}
			if seen := server.String(); seen != "" {
				t.Errorf("the server saw %q", seen)
			}
			if strings.Contains(fmt.Sprint(text, r.result()), realSecret) || len(r.result().Secrets) > 0 {
				t.Errorf("result %+v", r.result())
			}
		})
	}
}

func set(name, value string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set(name, value) }
}

func replace(old, with string) func(*http.Request) {
	return func(q *http.Request) {
		q.Header.Set("Authorization", strings.Replace(q.Header.Get("Authorization"), old, with, 1))
	}
}

func TestSignedNeedsTLSAndItsHost(t *testing.T) {
	stand := awsKey{standID, standSecret, ""}
	for name, change := range map[string]func(*rig){
		"plain":  func(r *rig) { r.target = Target{Host: host, Port: 80} },
		"host":   func(r *rig) { r.Bindings[0].Host = "*.amazonaws.com" },
		"broken": func(r *rig) { r.Secrets = vault{value: "no access key at all"} },
	} {
		server := &awsServer{key: awsKey{realID, realSecret, ""}}
		r := newRig(t, server, func(r *rig) { bindSigned("", stand, server.key)(r); change(r) })
		q := request(t, "GET", r.url("/"), nil)
		signWith(t, q, "", stand)
		want := map[string]string{"plain": "without TLS", "host": "may not be sent to", "broken": "could not be had"}[name]
		if res, text := r.do(r.client(false), q); res.StatusCode != 403 || !strings.Contains(text, want) || server.String() != "" {
			t.Errorf("%s: %d %q", name, res.StatusCode, text)
		}
	}
}

// TestSignaturesForCustomers: a host of a customer of AWS gets no signature that another
// service takes, whatever the binding names. The controls go on to the host, which is
// another in this rig.
func TestSignaturesForCustomers(t *testing.T) {
	stand := awsKey{standID, standSecret, ""}
	for _, tt := range []struct {
		name, bound, service string
		refused              bool
	}{
		{"a1b2.execute-api.eu-central-1.amazonaws.com", "", "sqs", true},
		{"a1b2.execute-api.eu-central-1.amazonaws.com", "*/sqs", "sqs", true},
		{"a1b2.execute-api.eu-central-1.amazonaws.com", "", "execute-api", false},
		{"a1b2.execute-api.cn-north-1.amazonaws.com.cn", "", "sqs", true},
		{"a1b2.appsync-api.eu-central-1.amazonaws.com", "", "sqs", true},
		{"a1b2.appsync-api.eu-central-1.amazonaws.com", "", "appsync", false},
		{"search-a1b2.eu-central-1.es.amazonaws.com", "", "sqs", true},
		{"a1b2.eu-central-1.elb.amazonaws.com", "", "sqs", true},
		{"ec2-192-0-2-1.compute-1.amazonaws.com", "*/sqs", "sqs", true},
		{"sqs.eu-central-1.amazonaws.com", "", "sqs", false},
		{"es.s3.amazonaws.com", "", "s3", false},
	} {
		r := newRig(t, http.NotFoundHandler(), func(r *rig) {
			bindSigned(tt.bound, stand, awsKey{realID, realSecret, ""})(r)
			r.target.Host, r.Bindings[0].Host = tt.name, tt.name
		})
		q := request(t, "GET", r.url("/"), nil)
		signAt(t, q, tt.name, tt.service, stand)
		want := map[bool]int{true: http.StatusForbidden, false: http.StatusBadGateway}[tt.refused]
		if res, text := r.do(r.client(false), q); res.StatusCode != want || strings.Contains(text, "of a customer of AWS") != tt.refused {
			t.Errorf("%s for %s, bound to %q: %d %q", tt.name, tt.service, tt.bound, res.StatusCode, text)
		}
	}
}

// signAt signs a request without a body for a service at a host.
func signAt(t *testing.T, q *http.Request, host, service string, key awsKey) {
	t.Helper()
	q.Header.Set("X-Amz-Date", signTime)
	date, _, _ := strings.Cut(signTime, "T")
	a, err := sigv4.ParseAuthorization("AWS4-HMAC-SHA256 Credential=" + key.id + "/" + date + "/eu-central-1/" + service + "/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := a.Sign(sigv4.Request{Method: "GET", Path: "/", Host: host, Header: q.Header, Payload: sha256Hex("")}, []byte(key.secret), sigv4.Twice)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", a.Line([]byte(key.id), signature))
}

// TestHeldBodies: what must be known as a whole has bounds.
func TestHeldBodies(t *testing.T) {
	busy := make(chan struct{}, 1)
	first, second := &held{busy: busy}, &held{busy: busy}
	long := bytes.Repeat([]byte("0123456789abcdef"), heldMemory/8)
	if _, err := first.Write(long); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write(long); err == nil || !strings.Contains(err.Error(), "one after the other") {
		t.Errorf("a second file: %v", err)
	}
	if got, err := io.ReadAll(first); err != nil || !bytes.Equal(got, long) {
		t.Errorf("%d bytes come back, %v", len(got), err)
	}
	first.size = maxHeld
	if _, err := first.Write(long[:1]); err == nil {
		t.Error("it has no bound")
	}
	for range 2 {
		if err := first.Close(); err != nil || len(busy) != 0 {
			t.Errorf("it is not given back: %v", err)
		}
	}
	if n, err := first.Read(long); n != 0 || err == nil {
		t.Error("it can be read when it is closed")
	}
}

// TestRefusalsThatClientsShow: each protocol's own error.
func TestRefusalsThatClientsShow(t *testing.T) {
	signed := "AWS4-HMAC-SHA256 Credential=x/20260301/eu-central-1/SERVICE/aws4_request"
	const element = "<Error><Code>BawnRefused</Code><Message>bawn refused this request: a &amp; b</Message></Error>"
	for name, tt := range map[string]struct{ service, kind, want string }{
		"json":  {"dynamodb", "application/x-amz-json-1.0", `{"__type":"BawnRefused","message":"bawn refused this request: a \u0026 b"}`},
		"query": {"sts", "application/x-www-form-urlencoded", "<ErrorResponse>" + element + "</ErrorResponse>\n"},
		"s3":    {"s3", "", element + "\n"},
		"ec2":   {"ec2", "", "<Response><Errors>" + element + "</Errors></Response>\n"},
	} {
		kind, body := (&Refusal{Status: 403, Reason: "a & b"}).awsError(http.Header{"Authorization": {strings.Replace(signed, "SERVICE", tt.service, 1)}, "Content-Type": {tt.kind}})
		if got := strings.TrimPrefix(string(body), xml.Header); got != tt.want || kind == "" {
			t.Errorf("%s: %q %q, want %q", name, kind, got, tt.want)
		}
	}
	if kind, _ := (&Refusal{}).awsError(http.Header{"Authorization": {"Bearer x"}}); kind != "" {
		t.Error("a request of another kind gets an error of AWS")
	}
}
