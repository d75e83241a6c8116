package mitm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

const (
	formType  = "application/x-www-form-urlencoded"
	partsType = "multipart/form-data; boundary=AaB03x"
)

func part(header, body string) string {
	return "--AaB03x\r\n" + header + "\r\n\r\n" + body + "\r\n--AaB03x--\r\n"
}

func packedWith(texts ...string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Comment = texts[len(texts)-1]
	io.WriteString(z, texts[0])
	z.Close()
	return b.String()
}

// framework takes the method from where frameworks do, and notes it together
// with all that has come of the body.
func (s *saw) framework(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	method := r.Method
	var fields struct {
		Method string `json:"_method"`
	}
	switch {
	case err != nil: // half a request is not decoded
		method = "BROKEN"
	case strings.Contains(r.Header.Get("Content-Type"), "/json"):
		_ = json.Unmarshal(body, &fields)
	case r.FormValue("_method") != "":
		fields.Method = r.FormValue("_method")
	}
	if fields.Method != "" {
		method = fields.Method
	}
	io.WriteString(s, "METHOD "+method+" BODY "+string(body))
	io.WriteString(w, method)
}

func limitedRig(t *testing.T, limited bool) (*rig, *saw) {
	t.Helper()
	seen := &saw{}
	return newRig(t, http.HandlerFunc(seen.framework), func(r *rig) {
		r.Limited = func(Request) bool { return limited }
		r.Decide = func(_ context.Context, q Request) bawn.Decision {
			if q.Method != "POST" {
				return bawn.Denied("POST only", "")
			}
			return bawn.Decision{Verdict: bawn.Allow}
		}
	}), seen
}

// TestMethodInBody: where methods are limited, a POST does not become a DELETE
// on the way, in whatever way a framework reads its fields. Where they are not
// it passes, byte for byte.
func TestMethodInBody(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	attacks := []struct {
		name, kind, body string
		header           []string
		effect           bool // Go's own parsers see it: the control has to be deleted
	}{
		{"form", formType, "_method=DELETE", nil, true},
		{"form, late", formType, "a=" + long + "&_method=DELETE", nil, true},
		{"form, escaped", formType, "%5f%6Dethod=DELETE", nil, true},
		{"form, second", formType, "_metho=x&&a&_method=DELETE&_method=x", nil, true},
		{"form, spelled otherwise", "Application/X-WWW-Form-URLEncoded; charset=UTF-8", "_method=DELETE", nil, true},
		{"form, upper case", formType, "_METHOD=DELETE", nil, false},
		{"form, semicolon", formType, "a=b;_method=DELETE", nil, false},
		{"form, dot", formType, ".method=DELETE", nil, false},
		{"form, space", formType, "a=b&+%20_method=DELETE", nil, false},
		{"form, spaces", formType, strings.Repeat("+", 9000) + "_method=DELETE", nil, false},
		{"form, NUL", formType, "_method%00%zz=DELETE", nil, false},
		{"form, NUL and more", formType, "_method%00" + long + "=DELETE", nil, false},
		{"form, list", formType, "_method[]=DELETE", nil, false},
		{"form, brackets", formType, "[_method]=DELETE", nil, false},
		{"form, as Rack 2 reads it", formType, "a=1&]_method=DELETE", nil, false},
		{"form, an empty list", formType, "[]%5D_method=DELETE", nil, false},
		{"form, many brackets", formType, strings.Repeat("]", 9000) + "_method=DELETE", nil, false},
		{"form, as ASP.NET", formType, "X-HTTP-Method-Override=DELETE", nil, false},
		{"form, its escapes", formType, "%u005Fmethod=DELETE", nil, false},
		{"form, no type", "", "_method=DELETE", nil, false},
		{"form, two types", "text/plain", "_method=DELETE", []string{"Content-Type", formType}, false},
		{"form, two types, one empty", "text/plain", "_method=DELETE", []string{"Content-Type", ""}, false},
		{"form, a type that is not forwarded", "text/plain", "_method=DELETE", []string{"Connection", "Content-Type"}, false},
		{"form, two types in one", "text/plain, " + formType, "_method=DELETE", nil, false},
		{"form, two types in quotes", `text/plain; x="`, "m\x94\x85\xa3\x88\x96\x84=DELETE", []string{"Content-Type", formType + `; charset=ibm037; y="`}, false},
		{"form, EBCDIC", formType + "; charset=ibm037", "m\x94\x85\xa3\x88\x96\x84=DELETE", nil, false},
		{"form, said to be packed", formType, "_method=DELETE", []string{"Content-Encoding", "gzip"}, false},
		{"form, in the packing", formType, packedWith("a=b", "&_method=DELETE&"), []string{"Content-Encoding", "gzip"}, false},
		{"parts", partsType, part(`Content-Disposition: form-data; name="_method"`, "DELETE"), nil, true},
		{"parts, late", partsType, part(`Content-Disposition: form-data; name="a"`, long+"\r\n"+part(`Content-Disposition: form-data; name="_method"`, "DELETE")), nil, true},
		{"parts, bare", partsType, part("content-disposition: form-data; name=_method", "DELETE"), nil, true},
		{"parts, quoted pair", partsType, part(`Content-Disposition: form-data; name="_meth\od"`, "DELETE"), nil, false},
		{"parts, folded", partsType, part("Content-Disposition: form-data;\r\n name=\"_method\"", "DELETE"), nil, true},
		{"parts, extended", partsType, part("Content-Disposition: form-data; name*=utf-8''%5fmethod", "DELETE"), nil, true},
		{"parts, in pieces", partsType, part(`Content-Disposition: form-data; name*0="_me"; name*1="thod"`, "DELETE"), nil, true},
		{"parts, encoded word", partsType, part(`Content-Disposition: form-data; name="=?utf-8?q?=5fmethod?="`, "DELETE"), nil, false},
		{"parts, Content-ID", partsType, part("Content-ID: _method", "DELETE"), nil, false},
		{"parts, other ends of lines", partsType, "--AaB03x\nContent-Disposition: form-data; name=\"_method\"\n\nDELETE\n--AaB03x--\n", nil, true},
		{"parts, long header", partsType, part("X: "+long+"\r\nContent-Disposition: form-data; name=\"_method\"", "DELETE"), nil, true},
		{"parts, dot", partsType, part(`Content-Disposition: form-data; name=".method"`, "DELETE"), nil, false},
		{"parts, a boundary in the boundary", `multipart/form-data; boundary="boundary=AaB03x"`, part(`Content-Disposition: form-data; name="_method"`, "DELETE"), nil, false},
		{"parts, related", "multipart/related; boundary=AaB03x", part(`Content-Disposition: form-data; name="_method"`, "DELETE"), nil, false},
		{"parts, two boundaries", "multipart/form-data; xboundary=AaB03x; boundary=B", part(`Content-Disposition: form-data; name="_method"`, "DELETE"), nil, false},
		{"JSON", "application/json", `{"_method":"DELETE"}`, nil, true},
		{"JSON, late and escaped", "application/vnd.x+json", `{"a":[{"b":"}\"{"},"` + long + `"], "\u005fmethod" :"DELETE"}`, nil, false},
		{"JSON, packed", "application/json", packedWith(`{"a":"`+long+`","_method":"DELETE"}`, ""), []string{"Content-Encoding", "gzip"}, false},
		{"JSON, type hidden", "text/plain; x=\"/json\"", `{"_method":"DELETE"}`, nil, true},
		{"JSON, in a form", formType + "; x=\"/json\"", `{"_method":"DELETE"}`, nil, true},
	}
	open, control := limitedRig(t, false)
	shut, seen := limitedRig(t, true)
	for _, tt := range attacks {
		for _, size := range []int{1 << 20, 7} {
			send := func(r *rig) *http.Response {
				q := request(t, "POST", r.url("/x"), ends{strings.NewReader(tt.body), size}, append([]string{"Content-Type", tt.kind}, tt.header...)...)
				if tt.kind == "" {
					q.Header.Del("Content-Type")
				}
				res, _ := r.do(r.client(false), q)
				return res
			}
			control.text.Reset()
			send(open)
			if got := control.String(); !strings.Contains(got, tt.body) || tt.effect && !strings.HasPrefix(got, "METHOD DELETE") {
				t.Errorf("%s: control: the server saw %.200q", tt.name, got)
			}
			res := send(shut)
			if res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusUnsupportedMediaType || shut.result().Err == nil {
				t.Errorf("%s, %d: status %d", tt.name, size, res.StatusCode)
			}
		}
	}
	if got := seen.String(); strings.Contains(got, "DELETE") || strings.Contains(got, "METHOD POST") {
		t.Errorf("the server saw %.300q", got)
	}
}

// TestMethodIsOnlyAWord: what holds the word but is no such field passes, and
// so does what has no fields.
func TestMethodIsOnlyAWord(t *testing.T) {
	r, seen := limitedRig(t, true)
	r.Decide = func(context.Context, Request) bawn.Decision { return bawn.Decision{Verdict: bawn.Allow} }
	conversation := `{"payment_method":"x","method":"y","messages":[{"content":"<input name=\"_method\"> {\"_method\":1}","_method":"z"}],"c":"_method"}`
	long := strings.Repeat("x", 100<<10)
	const script = "let a = 1;\n  method = 'GET'; // method = 1\n@method = x\n"
	parts := func(boundary string) string {
		return strings.ReplaceAll(part(`Content-Disposition: form-data; name="a"; filename="name*1.txt"`, "x"), "AaB03x", boundary)
	}
	for _, tt := range []struct{ kind, body, encoding string }{
		{"", script, ""},
		{formType, script, ""},
		{"multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", parts("----WebKitFormBoundary7MA4YWxkTrZu0gW"), ""},
		{"multipart/form-data; boundary=----geckoformboundarya1b2", parts("----geckoformboundarya1b2"), ""},
		{"multipart/form-data; boundary=dart-http-boundary-+x_y.z", parts("dart-http-boundary-+x_y.z"), ""},
		{formType, "method=DELETE&payment_method=x&a=_method&m=%26_method%3DDELETE&b=" + long, ""},
		{formType, conversation, ""}, // as curl sends it
		{formType, long, ""},
		{partsType, part(`Content-Disposition: form-data; name="payment_method"; filename="_method.rb"`, `name="_method" `+long+"\r\n"+part(`Content-Disposition: form-data; name="method"`, "x")), ""},
		{`multipart/mixed; boundary="AaB03x"; type="text/x"`, part(`Content-Type: text/html`, "<input name=\"_method\">\r\n\r\n"), ""},
		{"application/json", conversation, ""},
		{"application/json; charset=utf-8", packedWith(conversation, ""), "gzip"},
		{"application/json", `["_metho"` + strings.Repeat(" ", 100<<10) + `]`, ""},
		{"text/plain", "_method=DELETE", ""},
		{"application/octet-stream", "_method=DELETE", "br"},
	} {
		for _, size := range []int{1 << 20, 7} {
			q := request(t, "POST", r.url("/x"), ends{strings.NewReader(tt.body), size}, "Content-Type", tt.kind)
			if tt.encoding != "" {
				q.Header.Set("Content-Encoding", tt.encoding)
			}
			seen.text.Reset()
			if res, text := r.do(r.client(true), q); res.StatusCode != http.StatusOK || text != "POST" || seen.String() != "METHOD POST BODY "+tt.body {
				t.Errorf("%s %.60q: %d %.200s", tt.kind, tt.body, res.StatusCode, text)
			}
		}
	}
}

// TestUploads: what is put without a type, or as JSON, is no form to anybody,
// however it is packed. A form that is put is one to some.
func TestUploads(t *testing.T) {
	r, _ := limitedRig(t, true)
	r.Decide = func(context.Context, Request) bawn.Decision { return bawn.Decision{Verdict: bawn.Allow} }
	for _, tt := range []struct {
		kind, body, encoding string
		want                 int
	}{
		{"", "_method=DELETE", "", 200}, {"", packedWith("_method=DELETE", ""), "gzip", 200}, {"", "_method=DELETE", "aws-chunked", 200},
		{"application/json", `{"_method":"DELETE"}`, "aws-chunked", 200}, {formType, "_method=DELETE", "", 400}, {partsType, part(`Content-Disposition: form-data; name="_method"`, "DELETE"), "", 400},
	} {
		q := request(t, "PUT", r.url("/x"), strings.NewReader(tt.body))
		if tt.kind != "" {
			q.Header.Set("Content-Type", tt.kind)
		}
		if tt.encoding != "" {
			q.Header.Set("Content-Encoding", tt.encoding)
		}
		if res, text := r.do(r.client(false), q); res.StatusCode != tt.want {
			t.Errorf("%q packed as %q: %d %.200s", tt.kind, tt.encoding, res.StatusCode, text)
		}
	}
}

// TestLimitedByDefault: a server that nobody has told what is limited takes
// everything for it.
func TestLimitedByDefault(t *testing.T) {
	for limited, want := range map[bool]int{true: http.StatusBadRequest, false: http.StatusOK} {
		r := newRig(t, http.HandlerFunc((&saw{}).framework), func(r *rig) {
			if limited {
				r.Limited = nil
			}
		})
		if res, text := r.do(r.client(false), request(t, "POST", r.url("/x"), strings.NewReader("_method=DELETE"), "Content-Type", formType)); res.StatusCode != want {
			t.Errorf("limited %t: %d %.200s", limited, res.StatusCode, text)
		}
	}
}

// TestMethodInQuery: a parameter is told in whatever way a server reads it.
func TestMethodInQuery(t *testing.T) {
	r, seen := limitedRig(t, false)
	for query, want := range map[string]int{
		"method=x&a=_method": http.StatusOK, "_method=DELETE": http.StatusBadRequest, ".method=DELETE": http.StatusBadRequest, "a;%20_method[]=DELETE": http.StatusBadRequest,
		"_method%00%zz=DELETE": http.StatusBadRequest, "[_method]=DELETE": http.StatusBadRequest, "%5D_method=DELETE": http.StatusBadRequest, "%u005fmethod=DELETE": http.StatusBadRequest,
	} {
		got := statusCodes(r.raw("POST /x?" + query + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n"))
		if got != map[int]string{200: "200", 400: "400"}[want] {
			t.Errorf("%s: %s, want %d", query, got, want)
		}
	}
	if n := strings.Count(seen.String(), "METHOD"); n != 1 {
		t.Errorf("the server saw %d requests", n)
	}
}
