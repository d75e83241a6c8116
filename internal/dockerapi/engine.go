package dockerapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long the engine has.
const (
	shortTime  = 10 * time.Second
	createTime = 30 * time.Second
)

// Versions of the API that the broker speaks with the engine, whatever the
// guest speaks with the broker: what a field means depends on it.
const (
	oldestMinor = 40
	newestMinor = 47
)

// maxAnswer bounds an answer that is read as a whole.
const maxAnswer = 32 << 20

// An engine is a client of the real Docker API. Only the broker's own words go
// through it.
type engine struct {
	socket   string
	client   *http.Client
	patience time.Duration // for requests without a limit of their own

	mu    sync.Mutex
	minor int // of the API version, 0 until it is known
}

// Find returns the path of the engine's UNIX socket: the configured one, that of
// DOCKER_HOST, or the usual one. An address that is not a socket of this machine is an
// error.
func Find(configured string, getenv func(string) string) (string, error) {
	socket := configured
	if host := getenv("DOCKER_HOST"); socket == "" && host != "" {
		rest, ok := strings.CutPrefix(host, "unix://")
		if !ok {
			return "", fmt.Errorf("DOCKER_HOST is %q; want the socket of an engine on this machine, such as unix:///var/run/docker.sock", host)
		}
		socket = rest
	}
	socket = cmp.Or(socket, "/var/run/docker.sock")
	if info, err := os.Stat(socket); err != nil || info.Mode().Type() != fs.ModeSocket {
		return "", fmt.Errorf("no container engine listens at %q", socket)
	}
	return socket, nil
}

// Reach returns an error if the engine does not answer, or has no API version that the
// broker speaks.
func Reach(ctx context.Context, socket string) error {
	e := newEngine(socket)
	defer e.client.CloseIdleConnections()
	_, err := e.version(ctx)
	return err
}

func newEngine(socket string) *engine {
	e := &engine{socket: socket, patience: shortTime}
	e.client = &http.Client{
		Transport: &http.Transport{DialContext: e.dial, MaxIdleConns: 4, IdleConnTimeout: time.Minute, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the engine answers with a redirect, which nobody follows")
		},
	}
	return e
}

func (e *engine) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d := net.Dialer{Timeout: shortTime}
	return d.DialContext(ctx, "unix", e.socket)
}

// version returns the API version that the engine and the broker both speak.
func (e *engine) version(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.minor == 0 {
		minor, err := e.negotiate(ctx)
		if err != nil {
			return "", err
		}
		e.minor = minor
	}
	return fmt.Sprintf("1.%d", e.minor), nil
}

func (e *engine) negotiate(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return 0, err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("the engine does not answer: %w", err)
	}
	defer resp.Body.Close()
	text, ok := strings.CutPrefix(resp.Header.Get("Api-Version"), "1.")
	minor, err := strconv.Atoi(text)
	if !ok || err != nil || minor < oldestMinor {
		return 0, fmt.Errorf("the engine speaks version %.20q of the API; want 1.%d at least", resp.Header.Get("Api-Version"), oldestMinor)
	}
	return min(minor, newestMinor), nil
}

// A message is one request of the engine.
type message struct {
	method string
	path   string // of escaped segments, without the version
	query  url.Values
	body   any       // sent as JSON, or nil
	raw    io.Reader // sent as it is, in place of body
	kind   string    // of raw: its content type
	limit  time.Duration
}

func (m *message) request(ctx context.Context, version string) (*http.Request, error) {
	body := m.raw
	kind := m.kind
	if m.body != nil {
		data, err := json.Marshal(m.body)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(data), "application/json"
	}
	target := "http://engine/v" + version + m.path
	if len(m.query) > 0 {
		target += "?" + m.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, m.method, target, body)
	if err == nil && kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return req, err
}

// stream sends m and returns the answer, which the caller closes; an answer
// that is no success becomes an *engineError.
func (e *engine) stream(ctx context.Context, m message) (*http.Response, error) {
	version, err := e.version(ctx)
	if err != nil {
		return nil, err
	}
	req, err := m.request(ctx, version)
	if err != nil {
		return nil, err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the engine does not answer: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest || resp.StatusCode < http.StatusOK || resp.StatusCode == http.StatusNotModified {
		defer resp.Body.Close()
		return nil, failure(resp)
	}
	return resp, nil
}

// failure reads Docker's form of errors.
func failure(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what there is of it
	var text struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &text) != nil || text.Message == "" {
		text.Message = http.StatusText(resp.StatusCode)
	}
	return &engineError{Status: resp.StatusCode, Message: text.Message}
}

// do sends m and reads the answer into out, unless that is nil.
func (e *engine) do(ctx context.Context, m message, out any) error {
	if m.limit == 0 {
		m.limit = e.patience
	}
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	resp, err := e.stream(ctx, m)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the engine's answer ends early: %w", err)
	}
	if out == nil || len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the engine's answer can't be read: %w", err)
	}
	return nil
}

// gone reports whether err says that the engine does not have it. Docker says of an
// image that goes meanwhile that its ID is unrecognized, with status 500.
func gone(err error) bool {
	var e *engineError
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || strings.Contains(e.Message, "unrecognized image ID"))
}

// images lists the images that query asks for. An object that disappears meanwhile
// is no error.
func (e *engine) images(ctx context.Context, query url.Values, out any) error {
	const tries = 5
	for try := 1; ; try++ {
		if err := e.do(ctx, message{method: http.MethodGet, path: "/images/json", query: query}, out); err == nil || !gone(err) || try == tries {
			return err
		}
	}
}
