package mitm

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// echoes are what servers send back of what they got.
var echoes = map[string]func(string) string{
	"plain":         func(s string) string { return s },
	"base64":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 behind": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s + "c")) },
	"base64 URL":    func(s string) string { return base64.URLEncoding.EncodeToString([]byte("a" + s)) },
	"query":         url.QueryEscape,
	"path":          url.PathEscape,
	"lower percent": func(s string) string {
		return strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3C", "%3c").Replace(url.QueryEscape(s))
	},
	"UTF-16, big": func(s string) (out string) {
		for _, c := range s {
			out += string([]byte{0, byte(c)})
		}
		return out
	},
	"JSON": func(s string) string {
		out, _ := json.Marshal(s)
		return string(out)
	},
	"JSON, plain": func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) },
	"JSON, PHP":   func(s string) string { return strings.NewReplacer(`"`, `\"`, "/", `\/`).Replace(s) },
	"twice":       func(s string) string { return s + s },
	"JSON, .NET": func(s string) string {
		return strings.NewReplacer(`"`, `\u0022`, "+", `\u002B`, "<", `\u003C`).Replace(s)
	},
	"HTML": html.EscapeString,
	"HTML, Java": func(s string) string {
		return strings.NewReplacer(`"`, "&quot;", "<", "&lt;", "/", "&#x2F;").Replace(s)
	},
	"hex":       func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper hex": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"HTML, by number": func(s string) (out string) {
		for _, c := range s {
			out += fmt.Sprintf("&#%d;", c)
		}
		return out
	},
	"HTML, by hex": func(s string) (out string) {
		for _, c := range s {
			out += fmt.Sprintf("&#x%X;", c)
		}
		return out
	},
	"UTF-16": func(s string) (out string) {
		for _, c := range s {
			out += string([]byte{byte(c), 0})
		}
		return out
	},
	"base64, MIME": func(s string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte("x"+s)), 19, "\r\n") },
	"folded":       func(s string) string { return s[:9] + " " + s[9:] },
	"HTML, plus":   func(s string) string { return strings.ReplaceAll(html.EscapeString(s), "+", "&#43;") },
}

// leaks reports whether a text still tells the value, in any form.
func leaks(text string) bool {
	e := newEcho([]use{{value: []byte(value)}})
	at, _, _ := e.values.find([]byte(text))
	return at >= 0
}

func TestEchoesAreReplaced(t *testing.T) {
	for name, form := range echoes {
		for _, size := range []int{1, 5, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					text := "<" + form(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")) + ">"
					if !strings.ContainsAny(text, "\r\n\x00") {
						w.Header().Set("Location", "https://x/?t="+text)
					}
					w.Header().Set("Content-Length", fmt.Sprint(len(text)))
					w.Header().Set("X-Encoding", q.Header.Get("Accept-Encoding"))
					w.WriteHeader(http.StatusFound)
					for part := range chunks(text, size) {
						io.WriteString(w, part)
						w.(http.Flusher).Flush()
					}
				}), bind(bawn.Bearer, ""))
				if !leaks(form(value)) {
					t.Fatal("control: this form is not known")
				}
				res, body := r.do(r.client(size == 5), request(t, "GET", r.url("/"), nil, "Authorization", "Bearer "+placeholder, "Accept-Encoding", "br", "Range", "bytes=0-9"))
				if res.StatusCode != 302 || leaks(body) || leaks(fmt.Sprint(res.Header)) || body[0] != '<' || body[len(body)-1] != '>' {
					t.Errorf("%d %v %q", res.StatusCode, res.Header, body)
				}
				if !strings.Contains(body, placeholder) || !strings.Contains(res.Header.Get("Location"), placeholder) && !strings.ContainsAny(form(value), "\r\n\x00") || res.Header.Get("X-Encoding") != "identity" {
					t.Errorf("%v %q; want the placeholder", res.Header, body)
				}
			})
		}
	}
}

func chunks(text string, size int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// Where a host packs, cuts or hides an echo, it is known again or the answer
// is refused.
func TestEchoesInDisguise(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		token := q.Header.Get("Authorization")
		switch q.URL.Path {
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, gzipped(token))
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, token)
		case "/range":
			http.ServeContent(w, q, "x", time.Time{}, strings.NewReader(token))
		case "/trailer":
			w.Header().Set("Trailer", "X-End")
			io.WriteString(w, "body")
			w.Header().Set("X-End", token)
		case "/unannounced":
			io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+"X-End", token)
		case "/early":
			w.Header().Set("Link", token)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			io.WriteString(w, "body")
		}
	}), bind(bawn.Bearer, ""))
	auth := []string{"Authorization", "Bearer " + placeholder, "Range", "bytes=0-19"}
	for path, want := range map[string]string{"/gzip": "Bearer " + placeholder, "/br": "", "/range": "Bearer " + placeholder, "/trailer": "body", "/unannounced": "body", "/early": "body"} {
		for _, h2 := range []bool{false, true} {
			res, body := r.do(r.client(h2), request(t, "GET", r.url(path), nil, auth...))
			if path == "/br" {
				if res.StatusCode != 502 || strings.Contains(body, value) {
					t.Errorf("%s: %d %q", path, res.StatusCode, body)
				}
				continue
			}
			if res.StatusCode != 200 || body != want || leaks(fmt.Sprint(res.Header, res.Trailer)) {
				t.Errorf("%s: %d %q %v %v", path, res.StatusCode, body, res.Header, res.Trailer)
			}
			if strings.HasSuffix(path, "er") && path != "/range" && !strings.Contains(res.Trailer.Get("X-End"), placeholder) {
				t.Errorf("%s: trailer %v", path, res.Trailer)
			}
		}
	}
	if got := r.raw("GET /early HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + placeholder + "\r\n\r\n"); !strings.Contains(got, " 103 ") || !strings.Contains(got, "Link: Bearer "+placeholder) || leaks(got) {
		t.Errorf("early hints: %q", got)
	}
}

func TestHeadAndEmptyAnswers(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		default:
			w.Header().Set("Content-Length", "4")
			io.WriteString(w, "fine")
		}
	}), bind(bawn.Bearer, ""))
	for _, auth := range [][]string{nil, {"Authorization", "Bearer " + placeholder}} {
		for _, h2 := range []bool{false, true} {
			c := r.client(h2)
			for _, tt := range []struct {
				method, path string
				status       int
				length       int64
			}{{"HEAD", "/", 200, 4}, {"GET", "/204", 204, 0}, {"GET", "/304", 304, 0}} {
				res, body := r.do(c, request(t, tt.method, r.url(tt.path), nil, auth...))
				if res.StatusCode != tt.status || body != "" || res.ContentLength != tt.length && tt.status == 200 {
					t.Errorf("%s %s: %d, length %d, %q", tt.method, tt.path, res.StatusCode, res.ContentLength, body)
				}
			}
		}
	}
}

// What a host sends that is no HTTP stands in the error that the guest reads.
func TestEchoInBrokenAnswers(t *testing.T) {
	for _, form := range []string{"%s\r\n\r\n", "HTTP/1.1 200 OK\r\nX: \x00%s\r\n\r\n", "HTTP/1.1 200 OK\r\n%s\r\n\r\n", "HTTP/1.1 1%s\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n"} {
		r := newRawRig(t, func(conn net.Conn) {
			defer conn.Close()
			q, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				fmt.Fprintf(conn, form, strings.ReplaceAll(q.Header.Get("Authorization"), " ", "_"))
			}
		}, bind(bawn.Bearer, ""))
		res, body := r.do(r.client(false), request(t, "GET", r.url("/"), nil, "Authorization", "Bearer "+placeholder))
		if res.StatusCode != 502 || leaks(body) || leaks(r.result().Err.Error()) || !strings.Contains(body, placeholder) {
			t.Errorf("%q: %d %q; result %v", form, res.StatusCode, body, r.result().Err)
		}
	}
}

// An error quotes what it is about: UTF-16 has a NUL in each character, which no header
// takes.
func TestEchoInQuotedError(t *testing.T) {
	r := newRawRig(t, func(conn net.Conn) {
		defer conn.Close()
		if q, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX: %s\r\n\r\n", echoes["UTF-16"](q.Header.Get("Authorization")[len("Bearer "):]))
		}
	}, bind(bawn.Bearer, ""))
	res, body := r.do(r.client(false), request(t, "GET", r.url("/"), nil, "Authorization", "Bearer "+placeholder))
	if res.StatusCode != 502 || leaks(body) || !strings.Contains(body, placeholder) {
		t.Errorf("%d %q", res.StatusCode, body)
	}
}

// TestEchoesOfOddValues: a password may hold blanks and letters beyond ASCII,
// and a host may make a field's name of it.
func TestEchoesOfOddValues(t *testing.T) {
	const odd = "p\u00e4ss w\u00f6rd \U0001f511"
	e := newEcho([]use{{value: []byte(odd)}, {value: []byte(value)}, {value: []byte("abcDEF123456")}})
	for _, text := range []string{odd, `p\u00e4ss w\u00f6rd \ud83d\udd11`, `p\u00E4ss w\u00F6rd \uD83D\uDD11`, url.QueryEscape(odd), url.PathEscape(odd)} {
		if at, _, _ := e.values.find([]byte(text)); at != 0 {
			t.Errorf("%q is not known", text)
		}
	}
	h := http.Header{"X-Abcdef123456": {"x"}, "X-Other": {"x"}}
	if e.header(h); len(h) != 1 || h.Get("X-Other") == "" {
		t.Errorf("header %v", h)
	}
}
