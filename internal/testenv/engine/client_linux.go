package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	callTime  = 30 * time.Second
	maxAnswer = 32 << 20
)

// A StatusError is an answer of the engine that is no success.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("engine: %d: %s", e.Status, e.Message) }

// Call sends a request to the engine and returns the body of its answer. body is
// sent as JSON, an io.Reader unchanged, and nil sends no body. Errors are of the
// connection, or a *StatusError.
func (e *Engine) Call(ctx context.Context, method, path string, body any) ([]byte, error) {
	reader, kind, err := encode(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, reader)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = &StatusError{Status: resp.StatusCode, Message: strings.TrimSpace(string(text))}
	}
	return text, err
}

func encode(body any) (r io.Reader, kind string, err error) {
	switch b := body.(type) {
	case nil:
		return nil, "", nil
	case io.Reader:
		return b, "application/x-tar", nil
	}
	text, err := json.Marshal(body)
	return bytes.NewReader(text), "application/json", err
}

// get fetches what is at path into v.
func (e *Engine) get(t testing.TB, path string, v any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	text, err := e.Call(ctx, http.MethodGet, path, nil)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// importImage makes an image of one layer from a tar stream and returns its ID.
func (e *Engine) importImage(reference string, layer io.Reader, changes ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*callTime)
	defer cancel()
	name, tag, _ := strings.Cut(reference, ":")
	query := url.Values{"fromSrc": {"-"}, "repo": {name}, "tag": {tag}, "changes": changes}
	text, err := e.Call(ctx, http.MethodPost, "/images/create?"+query.Encode(), layer)
	if err != nil {
		return "", err
	}
	var last struct{ Status, Error string }
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		if err := d.Decode(&last); err != nil {
			return "", err
		}
	}
	if last.Error != "" || !strings.HasPrefix(last.Status, "sha256:") {
		return "", fmt.Errorf("import of %s: %q %q; want an ID", reference, last.Status, last.Error)
	}
	return last.Status, nil
}

// Inventory lists, sorted, what the engine holds besides its images, asked
// for where it answers and seen from outside: containers, networks, volumes,
// mounts, control groups and processes of containers.
func (e *Engine) Inventory(t testing.TB) []string {
	t.Helper()
	list := e.outside(t)
	select {
	case <-e.ended:
		return list // there is nobody to ask
	default:
	}
	var containers, networks []struct{ ID, Name string }
	var volumes struct{ Volumes []struct{ Name string } }
	e.get(t, "/containers/json?all=1", &containers)
	e.get(t, "/networks", &networks)
	e.get(t, "/volumes", &volumes)
	for _, c := range containers {
		list = append(list, "container "+c.ID)
	}
	for _, n := range networks {
		if !slices.Contains([]string{"bridge", "host", "none"}, n.Name) {
			list = append(list, "network "+n.Name)
		}
	}
	for _, v := range volumes.Volumes {
		list = append(list, "volume "+v.Name)
	}
	slices.Sort(list)
	return list
}

// Left waits until the engine holds nothing besides its images, as what ends a
// container takes a moment, and returns what is there after five seconds.
func (e *Engine) Left(t testing.TB) []string {
	t.Helper()
	for range 50 {
		if len(e.Inventory(t)) == 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return e.Inventory(t)
}

// outside lists what can be seen without the engine's help.
func (e *Engine) outside(t testing.TB) []string {
	t.Helper()
	mounts, err := mountsBelow(e.Dir)
	groups, err2 := groupsOf(e.name)
	members, err3 := membersOf(e.name)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatalf("engine: %v", err)
	}
	var list []string
	for _, m := range mounts {
		if m != filepath.Join(e.Dir, "data") { // which it mounts on itself
			list = append(list, "mount "+m)
		}
	}
	for _, g := range groups {
		if name := filepath.Base(g); name != e.name && name != "daemon" {
			list = append(list, "cgroup "+g)
		}
	}
	for _, pid := range members {
		// dockerd and its containerd stay; runtimes, shims and containers do not.
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if name := strings.TrimSpace(string(comm)); err == nil && name != "dockerd" && name != "containerd" {
			list = append(list, "process "+name)
		}
	}
	slices.Sort(list)
	return list
}
