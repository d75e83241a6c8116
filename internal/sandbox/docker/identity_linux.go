package docker

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// programs are an engine's own, where distributions put them. What was found out
// about an engine may no longer hold once one of them was replaced.
var programs = []string{"dockerd", "containerd", "containerd-shim-runc-v2", "runc", "crun", "podman"}

// identity says who the engine is, by what it says to a ping (Engine API, "ping")
// and by its programs. To ask for its version would have it start programs, which
// takes up to some 40 ms, for each session.
func (e *engine) identity(ctx context.Context) (string, error) {
	var said string
	err := e.call(ctx, e.life, "say what it is", func(ctx context.Context) (err error) {
		if _, err = e.client.Ping(ctx, client.PingOptions{}); err == nil {
			said, err = e.ping(ctx)
		}
		return err
	})
	return said + stats(), err
}

// ping returns the lines of an answer by which engines differ, of which the
// client keeps but some.
func (e *engine) ping(ctx context.Context) (string, error) {
	conn, err := e.client.Dialer()(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	over := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer over()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return "", err
	}
	req.Close = true
	if err := req.Write(conn); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it says %s to a ping", resp.Status)
	}
	h := resp.Header
	return fmt.Sprintf("%q", []string{h.Get("Server"), h.Get("Api-Version"), h.Get("Libpod-Api-Version")}), nil
}

// stats tells the engine's programs from others of their names.
func stats() string {
	var b strings.Builder
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"} {
		for _, name := range programs {
			var st syscall.Stat_t
			if syscall.Stat(filepath.Join(dir, name), &st) == nil {
				fmt.Fprintf(&b, "|%d.%d.%v", st.Dev, st.Ino, st.Ctim)
			}
		}
	}
	return b.String()
}
