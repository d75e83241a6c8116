package webui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
)

// Limits of one request.
const (
	maxBody   = 256 << 10
	bodyTime  = 15 * time.Second
	writeTime = 30 * time.Second // for each write: who reads nothing is cut off
)

// policy is the page's Content-Security-Policy: only its own files, no inline
// script or style, no text that becomes a script (CSP Level 3, Trusted Types).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types bawn"

// headers go with every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Permissions-Policy": "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), " +
		"payment=(), serial=(), usb=(), publickey-credentials-create=(self), publickey-credentials-get=(self)",
	"Referrer-Policy":        "no-referrer",
	"X-Content-Type-Options": "nosniff",
	"X-Frame-Options":        "DENY",
	"Cache-Control":          "no-store",
}

// A fault is why a request goes no further.
type fault struct {
	status int
	code   connect.Code
	why    string
}

func (f *fault) Error() string { return f.why }

// front is what every request passes first.
func (s *Server) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if err := s.judge(w, r); err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(&timedWriter{w, http.NewResponseController(w), s.writeTime}, r)
	})
}

// judge checks where a request comes from and reads its body.
func (s *Server) judge(w http.ResponseWriter, r *http.Request) *fault {
	if !s.requests.allow(peerOf(r)) {
		return &fault{http.StatusTooManyRequests, connect.CodeResourceExhausted, "too many requests; wait a little"}
	}
	if "https://"+strings.ToLower(r.Host) != s.origin {
		return &fault{http.StatusMisdirectedRequest, connect.CodePermissionDenied, "this is " + s.origin + ", which is the only name of this page"}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return judgeGet(r)
	case http.MethodPost:
		if f := s.judgePost(r); f != nil {
			return f
		}
		return readBody(w, r, s.bodyTime)
	}
	return &fault{http.StatusMethodNotAllowed, connect.CodeUnimplemented, "only GET, HEAD and POST are understood"}
}

// judgeGet lets other sites lead here by a link, and use nothing of the page.
// Browsers that send no Sec-Fetch-Site obey Cross-Origin-Resource-Policy.
func judgeGet(r *http.Request) *fault {
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "" || site == "same-origin" || site == "none" || r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	return &fault{http.StatusForbidden, connect.CodePermissionDenied, "another site may not load this page's parts"}
}

// contentTypes are those of Connect's protocols. A form can send none of them.
var contentTypes = []string{
	"application/json", "application/proto", "application/connect+json", "application/connect+proto",
	"application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json", "application/grpc", "application/grpc+proto", "application/grpc+json",
}

// judgePost wants the request to come from the page itself. Every browser sends
// Origin with a POST (Fetch Standard, "append a request Origin header").
func (s *Server) judgePost(r *http.Request) *fault {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return &fault{http.StatusForbidden, connect.CodePermissionDenied, "another site may not use this page's API"}
	}
	if origins := r.Header.Values("Origin"); len(origins) != 1 || origins[0] != s.origin {
		return &fault{http.StatusForbidden, connect.CodePermissionDenied, "a request without this page's Origin is not this page's"}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || len(r.Header.Values("Content-Type")) != 1 || !slices.Contains(contentTypes, kind) {
		return &fault{http.StatusUnsupportedMediaType, connect.CodeInvalidArgument, "want the content type application/json or another of Connect's"}
	}
	return nil
}

// readBody reads the body as a whole and in time, so that nothing behind it
// waits for a slow peer.
func readBody(w http.ResponseWriter, r *http.Request, limit time.Duration) *fault {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return &fault{http.StatusInternalServerError, connect.CodeInternal, "no limit for the time to read"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &fault{http.StatusRequestEntityTooLarge, connect.CodeResourceExhausted, fmt.Sprintf("a request has at most %d bytes", maxBody)}
	case err != nil:
		return &fault{http.StatusRequestTimeout, connect.CodeDeadlineExceeded, "the request did not come in time"}
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return &fault{http.StatusInternalServerError, connect.CodeInternal, "no limit for the time to read"}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// refuse answers in the protocol of the request, and records.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f *fault) {
	s.refusals.add(r, r.Method+" "+r.URL.Path, f.why)
	answerFault(w, r, f)
}

func answerFault(w http.ResponseWriter, r *http.Request, f *fault) {
	errors := connect.NewErrorWriter()
	if r.Method == http.MethodPost && f.status != http.StatusMisdirectedRequest && f.status != http.StatusUnsupportedMediaType && errors.IsSupported(r) {
		_ = errors.Write(w, r, connect.NewError(f.code, f)) // the peer is gone
		return
	}
	http.Error(w, f.why, f.status)
}

// A timedWriter gives each write its time.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

// Write writes p, or fails after the limit.
func (w *timedWriter) Write(p []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.limit)); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *timedWriter) Flush() {
	if w.control.SetWriteDeadline(time.Now().Add(w.limit)) == nil {
		_ = w.control.Flush() // the next write tells
	}
}

// Unwrap is http.ResponseController's.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// limitAttempts counts what somebody without a login may try.
func (s *Server) limitAttempts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cheap(r.URL.Path) && !s.attempts.allow(peerOf(r)) {
			s.refuse(w, r, &fault{http.StatusTooManyRequests, connect.CodeResourceExhausted, "too many attempts; wait a minute"})
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r)))
	})
}

// cheap reports whether the method tells nothing about codes and passkeys.
func cheap(path string) bool {
	return strings.HasSuffix(path, "/Me") || strings.HasSuffix(path, "/Logout")
}

type (
	requestKey struct{}
	deviceKey  struct{}
)

// DeviceOf returns the device whose request has that context.
func DeviceOf(ctx context.Context) (Device, bool) {
	d, ok := ctx.Value(deviceKey{}).(Device)
	return d, ok
}

// withDevice lets the requests of devices through.
func (s *Server) withDevice(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, one, ok := s.logins.find(r)
		device, there := s.devices.get(one.Device)
		if !ok || !there {
			s.refuse(w, r, &fault{http.StatusUnauthorized, connect.CodeUnauthenticated, "log in first"})
			return
		}
		ctx, done, ok := s.visits.begin(r.Context(), visit{device: device.ID, login: id})
		if !ok {
			s.refuse(w, r, &fault{http.StatusTooManyRequests, connect.CodeResourceExhausted, fmt.Sprintf("a device has at most %d requests at once", maxVisits)})
			return
		}
		defer done()
		s.crowd.knows(r.Context(), device.ID)
		if _, still := s.devices.get(device.ID); !still { // revoked since
			s.refuse(w, r, &fault{http.StatusUnauthorized, connect.CodeUnauthenticated, "log in first"})
			return
		}
		ctx = context.WithValue(context.WithValue(ctx, deviceKey{}, device), requestKey{}, r)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
