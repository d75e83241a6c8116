package mitm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestSecretsArePutIn(t *testing.T) {
	for _, tt := range []struct {
		place      bawn.Place
		name       string
		path       string
		header     []string
		wantHeader string // what the server gets
		wantQuery  string
	}{
		{bawn.Bearer, "", "/", []string{"Authorization", "Bearer " + placeholder}, "Bearer " + value, ""},
		{bawn.Bearer, "", "/", []string{"Authorization", "bearer " + placeholder}, "bearer " + value, ""},
		{bawn.Header, "Authorization", "/", []string{"authorization", "token " + placeholder}, "token " + value, ""},
		{bawn.Basic, "alice", "/", []string{"Authorization", basic("alice", placeholder)}, basic("alice", value), ""},
		{bawn.Basic, "", "/", []string{"Authorization", basic("anyone", placeholder)}, basic("anyone", value), ""},
		{bawn.InQuery, "key", "/?a=%zz&key=" + placeholder + "&b;", nil, "", "a=%zz&key=" + url.QueryEscape(value) + "&b;"},
		{bawn.InQuery, "key", "/?k%65y=" + strings.ReplaceAll(placeholder, "_", "%5F"), nil, "", "k%65y=" + url.QueryEscape(value)},
	} {
		for _, h2 := range []bool{false, true} {
			var got *http.Request
			r := newRig(t, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { got = q }), bind(tt.place, tt.name))
			res, body := r.do(r.client(h2), request(t, "GET", r.url(tt.path), nil, tt.header...))
			if res.StatusCode != 200 || got.Header.Get("Authorization") != tt.wantHeader || got.URL.RawQuery != tt.wantQuery {
				t.Errorf("%s %s %v: %d %q; the server got %v ?%s", tt.place, tt.path, tt.header, res.StatusCode, body, got, tt.wantQuery)
				continue
			}
			if q := r.asked[0]; strings.Contains(fmt.Sprint(q), value) || fmt.Sprint(q.Secrets) != "[token]" {
				t.Errorf("the question is %v", q)
			}
			if s := r.result().Secrets; len(s) != 1 || s[0] != "token" {
				t.Errorf("the result names %q", s)
			}
		}
	}
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func base64At(offset int) string {
	return base64.StdEncoding.EncodeToString([]byte("xyz"[:offset] + placeholder + " and more"))
}

// TestSecretsStandNowhereElse sends the placeholder to every other place. The
// server must get neither it nor the value, and no whole request.
func TestSecretsStandNowhereElse(t *testing.T) {
	everyByte := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02x", c)
		}
		return b.String()
	}
	bearer := []string{"Authorization", "Bearer " + placeholder}
	for _, tt := range []struct {
		name, path, body string
		header           []string
		status           int
	}{
		{"control", "/", "body", bearer, 200},
		{"control: packed", "/", gzipped("body"), append([]string{"Content-Encoding", "gzip"}, bearer...), 200},
		{"control: GitHub's own scheme", "/", "body", []string{"Authorization", "token " + placeholder}, 200},
		{"another header", "/", "", []string{"X-Key", placeholder}, 403},
		{"another header as well", "/", "", append([]string{"X-Key", placeholder}, bearer...), 403},
		{"a header's name", "/", "", []string{placeholder, "x"}, 403},
		{"another scheme", "/", "", []string{"Authorization", "Digest " + placeholder}, 403},
		{"more than the token", "/", "", []string{"Authorization", "Bearer x" + placeholder}, 403},
		{"two lines", "/", "", append([]string{"Authorization", "Bearer x"}, bearer...), 403},
		{"a cookie", "/", "", []string{"Cookie", "a=" + placeholder}, 403},
		{"basic", "/", "", []string{"Authorization", basic("alice", placeholder)}, 403},
		{"basic, the user", "/", "", []string{"Authorization", basic(placeholder, "x")}, 403},
		{"percent in a header", "/", "", []string{"Referer", "https://x/?" + everyByte(placeholder)}, 403},
		{"the path", "/" + placeholder, "", nil, 403},
		{"the path, escaped", "/" + everyByte(placeholder), "", nil, 403},
		{"the query", "/?key=" + placeholder, "", nil, 403},
		{"the query, escaped", "/?key=" + everyByte(placeholder), "", nil, 403},
		{"the query, base64", "/?key=" + url.QueryEscape(base64At(1)), "", nil, 403},
		{"a hop-by-hop header", "/", "", []string{"Proxy-Authorization", "Bearer " + placeholder}, 403},
		{"the body", "/", "the key is " + placeholder, nil, 403},
		{"the body beside its place", "/", "the key is " + placeholder, bearer, 403},
		{"the body, base64 0", "/", base64At(0), nil, 403},
		{"the body, base64 1", "/", base64At(1), nil, 403},
		{"the body, base64 2", "/", base64At(2), nil, 403},
		{"the body, percent", "/", "a=" + everyByte(placeholder), nil, 403},
		{"the body, percent in part", "/", strings.Replace(placeholder, "7", "%37", 1), nil, 403},
		{"the body, far behind", "/", strings.Repeat("x", 300<<10) + placeholder, nil, 403},
		{"a packed body", "/", gzipped(strings.Repeat("x", 300<<10) + placeholder), []string{"Content-Encoding", "gzip"}, 403},
		{"a packed body, two members", "/", gzipped("x"+placeholder[:9]) + gzipped(placeholder[9:]), []string{"Content-Encoding", "gzip"}, 403},
		{"a body that is packed otherwise", "/", "x", []string{"Content-Encoding", "br"}, 415},
		{"a body that is packed twice", "/", gzipped(gzipped("x")), []string{"Content-Encoding", "gzip, gzip"}, 415},
		{"a body that is not packed", "/", placeholder, []string{"Content-Encoding", "gzip"}, 502},
		{"a packed body with a tail", "/", gzipped("x") + placeholder, []string{"Content-Encoding", "gzip"}, 502},
		{"another host's", "/", "", []string{"Authorization", "Bearer " + other}, 403},
		{"another host's in the body", "/", other, nil, 403},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			if size < 7 && len(tt.body) > 1<<10 || size < 1<<20 && tt.body == "" {
				continue
			}
			for _, h2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", tt.name, size, h2), func(t *testing.T) {
					var seen saw
					r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
						bind(bawn.Bearer, "")(r)
						if !h2 {
							r.up.NextProtos = []string{"http/1.1"}
						}
					})
					method, body := "GET", io.Reader(nil)
					if tt.body != "" {
						method, body = "POST", ends{strings.NewReader(tt.body), size}
					}
					if size == 1<<20 { // with its length, which makes the last byte the end
						body = strings.NewReader(tt.body)
					}
					res, text := r.do(r.client(h2), request(t, method, r.url(tt.path), body, tt.header...))
					if res.StatusCode != tt.status {
						t.Fatalf("%d %q, want %d", res.StatusCode, text, tt.status)
					}
					if tt.status == 200 {
						return
					}
					if got := seen.String(); strings.Contains(got, "host=") || strings.Contains(got, placeholder) || strings.Contains(got, value) {
						t.Errorf("the server saw %.200q", got)
					}
					if tt.status == 403 && !strings.Contains(text, `"token"`) && !strings.Contains(text, `"elsewhere"`) {
						t.Errorf("the refusal names no secret: %q", text)
					}
					if r.result().Err == nil || strings.Contains(fmt.Sprint(r.result(), text), value) {
						t.Errorf("result %+v", r.result())
					}
				})
			}
		}
	}
}

func TestPlaceholderInTrailer(t *testing.T) {
	for trailer, want := range map[string]int{"fine": 200, placeholder: 403} {
		var seen saw
		r := newRig(t, http.HandlerFunc(seen.describe), bind(bawn.Bearer, ""))
		q := request(t, "POST", r.url("/"), pieces{strings.NewReader("body"), 1})
		q.Trailer = http.Header{"X-End": {trailer}}
		res, text := r.do(r.client(false), q)
		if res.StatusCode != want || strings.Contains(seen.String(), "trailer=map[X-End:["+trailer) != (want == 200) {
			t.Errorf("trailer %q: %d %q; the server saw %q", trailer, res.StatusCode, text, &seen)
		}
	}
}

func TestSecretsNeedTLS(t *testing.T) {
	for _, tls := range []bool{true, false} {
		var seen saw
		r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
			bind(bawn.Bearer, "")(r)
			if !tls {
				r.target = Target{Host: host, Port: 80}
			}
		})
		res, text := r.do(r.client(false), request(t, "GET", r.url("/"), nil, "Authorization", "Bearer "+placeholder))
		if tls != (res.StatusCode == 200) || !tls && (!strings.Contains(text, "without TLS") || seen.String() != "") {
			t.Errorf("TLS %v: %d %q; the server saw %q", tls, res.StatusCode, text, &seen)
		}
	}
}

// A secret that can't be had is not left out: the request does not happen.
func TestLendFails(t *testing.T) {
	for name, source := range map[string]bawn.SecretSource{"": vault{}, "unsendable": vault{value: "x\r\nX-Admin: 1"}, "broken": vault{err: errors.New("keyring is locked")}, "none": nil} {
		var seen saw
		r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
			bind(bawn.Bearer, "")(r)
			r.Secrets = source
		})
		res, text := r.do(r.client(false), request(t, "GET", r.url("/"), nil, "Authorization", "Bearer "+placeholder))
		if name == "" {
			if res.StatusCode != 200 {
				t.Errorf("control: %d %q", res.StatusCode, text)
			}
			continue
		}
		if res.StatusCode != 403 || !strings.Contains(text, `"token"`) || seen.String() != "" || strings.Contains(text, "keyring") {
			t.Errorf("%s vault: %d %q; the server saw %q", name, res.StatusCode, text, &seen)
		}
		if name == "broken" && !strings.Contains(fmt.Sprint(r.result().Err), "keyring is locked") {
			t.Errorf("the result does not say why: %v", r.result().Err)
		}
		if r.result().Err == nil || len(r.result().Secrets) != 0 {
			t.Errorf("%s vault: %+v", name, r.result())
		}
	}
}

func TestBasicNeedsItsUser(t *testing.T) {
	for user, want := range map[string]int{"alice": 200, "mallory": 403, "": 403} {
		r := newRig(t, http.HandlerFunc(new(saw).describe), bind(bawn.Basic, "alice"))
		if res, text := r.do(r.client(false), request(t, "GET", r.url("/"), nil, "Authorization", basic(user, placeholder))); res.StatusCode != want {
			t.Errorf("user %q: %d %q, want %d", user, res.StatusCode, text, want)
		}
	}
}

func TestUnsendableValues(t *testing.T) {
	b := bawn.Binding{Secret: "x", Place: bawn.Bearer}
	for text, want := range map[string]bool{"long enough": true, "": false, "short": false, "line\r\nX-Admin: 1": false, "nul\x00nul": false, strings.Repeat("x", 4<<10): true, strings.Repeat("x", 4<<10+1): false} {
		if err := sendable(b, []byte(text)); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUnusableBindings(t *testing.T) {
	good := bawn.Binding{Secret: "x", Host: host, Place: bawn.Bearer, Placeholder: placeholder}
	for name, change := range map[string]func(*bawn.Binding){
		"control":        func(*bawn.Binding) {},
		"no name":        func(b *bawn.Binding) { b.Secret = "" },
		"no place":       func(b *bawn.Binding) { b.Place = 0 },
		"no placeholder": func(b *bawn.Binding) { b.Placeholder = "" },
		"a short one":    func(b *bawn.Binding) { b.Placeholder = "abc" },
		"a blank in it":  func(b *bawn.Binding) { b.Placeholder = "some words with blanks" },
		"no header":      func(b *bawn.Binding) { b.Place = bawn.Header },
		"no parameter":   func(b *bawn.Binding) { b.Place = bawn.InQuery },
		"all of it":      func(b *bawn.Binding) { *b = bawn.Binding{} },
	} {
		b := good
		change(&b)
		if err := usable(b); (err == nil) != (name == "control") {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, _ := net.Pipe()
	if err := (&Server{CA: newCA(t), Bindings: make([]bawn.Binding, 1)}).Serve(t.Context(), a, Target{Host: host, Port: 80}); err == nil {
		t.Error("a session with a zero binding was served")
	}
}
