package sigv4

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// vectors are requests whose signatures AWS has published: its test suite for
// Version 4, the example of "Create a signed AWS API request", and those of
// "Authenticating Requests" in the S3 API Reference.
var vectors = []struct {
	name, secret string
	line         string // of Authorization
	Request
}{
	{"get-vanilla", suiteSecret, suite("host;x-amz-date", "service", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
		Request{"GET", "/", "", "example.amazonaws.com", 0, at("20150830T123600Z"), emptyHash}},
	{"get-vanilla-query-order-key-case", suiteSecret, suite("host;x-amz-date", "service", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
		Request{"GET", "/", "Param2=value2&Param1=value1", "example.amazonaws.com", 0, at("20150830T123600Z"), emptyHash}},
	{"post-x-www-form-urlencoded", suiteSecret, suite("content-type;host;x-amz-date", "service", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
		Request{"POST", "/", "", "example.amazonaws.com", 13, at("20150830T123600Z", "Content-Type", "application/x-www-form-urlencoded"), hashOf("Param1=value1")}},
	{"iam", suiteSecret, suite("content-type;host;x-amz-date", "iam", "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"),
		Request{"GET", "/", "Action=ListUsers&Version=2010-05-08", "iam.amazonaws.com", 0, at("20150830T123600Z", "content-type", "application/x-www-form-urlencoded; charset=utf-8"), emptyHash}},
	{"s3 get", s3Secret, s3("host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
		Request{"GET", "/test.txt", "", "examplebucket.s3.amazonaws.com", 0, at("20130524T000000Z", "Range", "bytes=0-9", "X-Amz-Content-Sha256", emptyHash), emptyHash}},
	{"s3 put", s3Secret, s3("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
		Request{"PUT", "/test%24file.text", "", "examplebucket.s3.amazonaws.com", -1, at("20130524T000000Z", "Date", "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class", "REDUCED_REDUNDANCY", "X-Amz-Content-Sha256", hashOf("Welcome to Amazon S3.")), hashOf("Welcome to Amazon S3.")}},
	{"s3 lifecycle", s3Secret, s3("host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
		Request{"GET", "/", "lifecycle", "examplebucket.s3.amazonaws.com", 0, at("20130524T000000Z", "X-Amz-Content-Sha256", emptyHash), emptyHash}},
	{"s3 list", s3Secret, s3("host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
		Request{"GET", "/", "max-keys=2&prefix=J", "examplebucket.s3.amazonaws.com", 0, at("20130524T000000Z", "X-Amz-Content-Sha256", emptyHash), emptyHash}},
}

// The keys are AWS's own examples.
const (
	suiteSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	s3Secret    = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

func suite(signed, service, signature string) string {
	return "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/" + service + "/aws4_request, SignedHeaders=" + signed + ", Signature=" + signature
}

func s3(signed, signature string) string {
	return "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=" + signed + ",Signature=" + signature
}

func at(date string, header ...string) map[string][]string {
	h := map[string][]string{"X-Amz-Date": {date}}
	for i := 0; i+1 < len(header); i += 2 {
		h[header[i]] = append(h[header[i]], header[i+1])
	}
	return h
}

func TestPublishedSignatures(t *testing.T) {
	for _, v := range vectors {
		a, err := ParseAuthorization(v.line)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		reading, err := a.Verify(v.Request, []byte(v.secret))
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		if got, err := a.Sign(v.Request, []byte(v.secret), reading); got != a.Signature || err != nil {
			t.Errorf("%s: signed as %s, %v", v.name, got, err)
		}
		if again, err := ParseAuthorization(a.Line([]byte(a.ID), a.Signature)); err != nil || again.Line(nil, "") != a.Line(nil, "") {
			t.Errorf("%s: %q is not what was read: %v", v.name, a.Line([]byte(a.ID), a.Signature), err)
		}
	}
}

// TestOneChangeBreaksIt: nothing that is signed can change.
func TestOneChangeBreaksIt(t *testing.T) {
	for name, change := range map[string]func(*Request, *Authorization){
		"method":    func(r *Request, _ *Authorization) { r.Method = "PUT" },
		"path":      func(r *Request, _ *Authorization) { r.Path = "/x" },
		"query":     func(r *Request, _ *Authorization) { r.Query += "&x=1" },
		"host":      func(r *Request, _ *Authorization) { r.Host = "iam.example.com" },
		"header":    func(r *Request, _ *Authorization) { r.Header["content-type"] = []string{"text/plain"} },
		"twice":     func(r *Request, _ *Authorization) { r.Header["Content-Type"] = []string{"text/plain"} },
		"no header": func(r *Request, _ *Authorization) { delete(r.Header, "content-type") },
		"time":      func(r *Request, _ *Authorization) { r.Header["X-Amz-Date"] = []string{"20150830T123601Z"} },
		"payload":   func(r *Request, _ *Authorization) { r.Payload = Unsigned },
		"date":      func(_ *Request, a *Authorization) { a.Date = "20150831" },
		"region":    func(_ *Request, a *Authorization) { a.Region = "us-east-2" },
		"service":   func(_ *Request, a *Authorization) { a.Service = "sts" },
		"headers":   func(_ *Request, a *Authorization) { a.Signed = []string{"host", "x-amz-date"} },
	} {
		v := vectors[3]
		v.Header = at("20150830T123600Z", "content-type", "application/x-www-form-urlencoded; charset=utf-8")
		a, err := ParseAuthorization(v.line)
		if err != nil {
			t.Fatal(err)
		}
		change(&v.Request, &a)
		if _, err := a.Verify(v.Request, []byte(v.secret)); err == nil {
			t.Errorf("%s: still verifies", name)
		}
	}
	a, _ := ParseAuthorization(vectors[3].line)
	if _, err := a.Verify(vectors[3].Request, []byte(s3Secret)); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
}

// TestReadingsOfPaths: as S3 has it, and escaped once more as the others do.
func TestReadingsOfPaths(t *testing.T) {
	a, _ := ParseAuthorization(vectors[0].line)
	for path, want := range map[string][3]string{
		"":           {"/", "/", "/"},
		"/a%20b/c":   {"/a%20b/c", "/a%2520b/c", "/a%20b/c"},
		"/a:b(1)%2F": {"/a:b(1)%2F", "/a%3Ab%281%29%252F", "/a%3Ab%281%29/"},
	} {
		r := vectors[0].Request
		r.Path = path
		for i, reading := range []Reading{AsSent, Twice, Strict} {
			if got := r.path(reading); got != want[i] {
				t.Errorf("%q read as %d is %q, want %q", path, reading, got, want[i])
			}
			a.Signature, _ = a.Sign(r, []byte(suiteSecret), reading)
			if _, err := a.Verify(r, []byte(suiteSecret)); err != nil {
				t.Errorf("%q read as %d: %v", path, reading, err)
			}
		}
	}
}

func TestCanonicalParts(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "b&a": "a=&b=", "a=2&a=1": "a=1&a=2", "x=a%2fb": "x=a%2Fb", "x=a b": "x=a%20b", "k=%zz": "k=%25zz", "&&a=1&": "a=1", "x=~-_.*": "x=~-_.%2A",
		"ab=1&a=2": "a=2&ab=1", "a=b=c": "a=b%3Dc",
	} {
		if got := canonicalQuery(query); got != want {
			t.Errorf("query %q is %q, want %q", query, got, want)
		}
	}
	r := Request{Host: "h", Length: 3, Header: map[string][]string{"My-Header": {"  a   b  c ", "d"}}}
	for name, want := range map[string]string{"host": "h", "content-length": "3", "my-header": "a b c,d"} {
		if got, ok := r.value(name); got != want || !ok {
			t.Errorf("header %q is %q, want %q", name, got, want)
		}
	}
}

// TestMAC compares with the library, whose keys stay in memory.
func TestMAC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, text := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "key"), rapid.String().Draw(t, "text")
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		got := make([]byte, sha256.Size)
		mac(got, key, text)
		if want := h.Sum(nil); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
	})
}

func TestRefusedAuthorizations(t *testing.T) {
	good := vectors[3].line
	for name, tt := range map[string]struct{ line, why string }{
		"control":         {good, ""},
		"empty":           {"", "does not begin with"},
		"4A":              {strings.Replace(good, "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", 1), "Version 4A"},
		"another":         {strings.Replace(good, "AWS4-HMAC-SHA256", "AWS3", 1), "does not begin with"},
		"no host":         {strings.Replace(good, ";host;", ";", 1), "does not cover the host"},
		"disorder":        {strings.Replace(good, "content-type;host", "host;content-type", 1), "not in order"},
		"twice":           {strings.Replace(good, ";host;", ";host;host;", 1), "not in order"},
		"upper case":      {strings.Replace(good, ";host;", ";Host;", 1), "not in order"},
		"no signature":    {good[:strings.Index(good, ", Signature")], "not complete"},
		"two signatures":  {good + ", Signature=" + emptyHash, "two fields"},
		"two credentials": {good + ", Credential=AKIDOTHER/20150830/us-east-1/iam/aws4_request", "two fields"},
		"short signature": {good[:len(good)-1], "64 hex"},
		"scope":           {strings.Replace(good, "/iam/", "/", 1), "another scope"},
		"empty region":    {strings.Replace(good, "us-east-1", "", 1), "another scope"},
		"line break":      {strings.Replace(good, "us-east-1", "us\r\nX-A: b", 1), "another scope"},
		"end":             {strings.Replace(good, "aws4_request", "aws5_request", 1), "another scope"},
		"date":            {strings.Replace(good, "20150830", "20151330", 1), "of the date"},
		"another field":   {good + ", X=1", "the field"},
		"long":            {good + strings.Repeat(" ", maxAuthorization), "does not begin with"},
	} {
		_, err := ParseAuthorization(tt.line)
		if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v, want %q", name, err, tt.why)
		}
	}
}

func TestTimes(t *testing.T) {
	a := Authorization{Date: "20150830"}
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		header map[string][]string
		why    string
	}{
		"control":     {at("20150830T123600Z"), ""},
		"near":        {at("20150830T120000Z"), ""},
		"Date":        {map[string][]string{"Date": {"Sun, 30 Aug 2015 12:36:00 GMT"}}, ""},
		"another day": {at("20150831T000000Z"), "the same day"},
		"later":       {at("20150830T143600Z"), "for later"},
		"earlier":     {at("20150830T013600Z"), "for later"},
		"none":        {nil, "without a time"},
		"two":         {map[string][]string{"X-Amz-Date": {"20150830T123600Z", "20150830T123600Z"}}, "one X-Amz-Date"},
		"odd":         {at("2015-08-30"), "one X-Amz-Date"},
		"two names":   {map[string][]string{"X-Amz-Date": {"20150830T123600Z"}, "x-amz-date": {"20150830T123600Z"}}, "one X-Amz-Date"},
	} {
		err := a.Near(Request{Header: tt.header}, now, time.Hour)
		if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v, want %q", name, err, tt.why)
		}
	}
}

func TestCredentials(t *testing.T) {
	id, secret, token := "AKIAIOSFODNN7EXAMPLE", s3Secret, "FwoGZXIvYXdzEJr//////////wEaDExample=="
	for text, want := range map[string]int{
		id + ":" + secret: 2, id + ":" + secret + ":" + token: 3,
		id: 0, "": 0, id + ":": 0, id + ":" + secret + ":": 0, id + ":" + secret + ":" + token + ":x": 0, id + " :" + secret: 0, id[:15] + ":" + secret: 0,
		id + ":" + secret + "\n": 0, id + ":short": 0, id + ":" + secret + ":" + strings.Repeat("x", MaxToken+1): 0, "é" + id + ":" + secret: 0,
	} {
		c, err := ParseCredential([]byte(text))
		if (err == nil) != (want > 0) || err == nil && (len(c.Parts()) != want || string(c.Text()) != text) {
			t.Errorf("%q: %q, %v", text, c, err)
		}
		if err != nil && len(text) > 0 && strings.Contains(err.Error(), text) {
			t.Errorf("the error has the text: %v", err)
		}
	}
}

// FuzzAuthorization: what is read can be written and read again, and a
// signature that we make of it verifies, also with what stands in a request.
func FuzzAuthorization(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.line, v.Path, v.Query, "X-Amz-Date", "20150830T123600Z")
	}
	f.Fuzz(func(t *testing.T, line, path, query, name, value string) {
		a, err := ParseAuthorization(line)
		if err != nil {
			return
		}
		if strings.ContainsAny(a.Line(nil, a.Signature), "\r\n") || !a.Covers("host") {
			t.Fatalf("%q is read as %+v", line, a)
		}
		if b, err := ParseAuthorization(a.Line([]byte(a.ID), a.Signature)); err != nil || b.Line([]byte(b.ID), b.Signature) != a.Line([]byte(a.ID), a.Signature) {
			t.Fatalf("%q is written as %q: %v", line, a.Line([]byte(a.ID), a.Signature), err)
		}
		r := Request{Method: "GET", Path: path, Query: query, Host: "h", Header: map[string][]string{name: {value}}, Payload: emptyHash}
		if a.Signature, err = a.Sign(r, []byte(suiteSecret), Twice); err != nil {
			return
		}
		if _, err := a.Verify(r, []byte(suiteSecret)); err != nil {
			t.Fatal(err)
		}
		r.Host = "elsewhere"
		if _, err := a.Verify(r, []byte(suiteSecret)); err == nil {
			t.Fatal("the signature is good for another host")
		}
	})
}
