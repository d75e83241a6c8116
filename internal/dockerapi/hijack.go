package dockerapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// errHijacked says that a connection is no longer that of requests.
var errHijacked = errors.New("the connection carries a stream")

// Content types of streams.
var streamKinds = []string{"application/vnd.docker.raw-stream", "application/vnd.docker.multiplexed-stream"}

// hijack makes a stream of the guest's connection and of one to the engine,
// which agrees first: answered, unless nil, is told before anything else happens
// whether it does. Each way ends by itself.
func (b *Broker) hijack(w http.ResponseWriter, r *http.Request, m message, answered func(error)) error {
	upstream, answers, kind, err := b.upgrade(r.Context(), m)
	if answered != nil {
		answered(err)
	}
	if err != nil {
		return err
	}
	defer upstream.Close()
	h, ok := w.(http.Hijacker)
	if !ok {
		return errors.New("BUG(bawn): a connection that can't be taken over")
	}
	guest, buffered, err := h.Hijack()
	if err != nil {
		return fmt.Errorf("take the guest's connection over: %w", err)
	}
	defer guest.Close()
	stop := context.AfterFunc(b.life, func() {
		guest.Close()
		upstream.Close()
	})
	defer stop()
	head := "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\n\r\n"
	if upgrades(r) {
		head = "HTTP/1.1 101 UPGRADED\r\nContent-Type: " + kind + "\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	}
	if err := errors.Join(guest.SetDeadline(time.Time{}), writeAll(guest, head)); err != nil {
		return errHijacked
	}
	both(guest, buffered.Reader, upstream, answers)
	return errHijacked
}

func writeAll(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// upgrades reports whether the client knows that the connection changes.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "tcp") && strings.EqualFold(r.Header.Get("Connection"), "upgrade")
}

// upgrade asks the engine for a stream.
func (b *Broker) upgrade(ctx context.Context, m message) (net.Conn, *bufio.Reader, string, error) {
	version, err := b.engine.version(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	req, err := m.request(ctx, version)
	if err != nil {
		return nil, nil, "", err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	conn, err := b.engine.dial(ctx, "", "")
	if err != nil {
		return nil, nil, "", fmt.Errorf("the engine does not answer: %w", err)
	}
	reader := bufio.NewReader(conn)
	kind, err := b.agree(conn, reader, req)
	if err != nil {
		return nil, nil, "", errors.Join(err, conn.Close())
	}
	return conn, reader, kind, nil
}

// agree sends the request and reads the answer's head.
func (b *Broker) agree(conn net.Conn, reader *bufio.Reader, req *http.Request) (string, error) {
	if err := conn.SetDeadline(b.o.Now().Add(createTime)); err != nil {
		return "", err
	}
	if err := req.Write(conn); err != nil {
		return "", fmt.Errorf("the engine does not listen: %w", err)
	}
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return "", fmt.Errorf("the engine does not answer: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols { // after any other answer the engine reads on: requests
		defer resp.Body.Close()
		return "", failure(resp)
	}
	kind := resp.Header.Get("Content-Type")
	if !oneOf(kind, streamKinds...) {
		kind = streamKinds[0]
	}
	return kind, conn.SetDeadline(time.Time{})
}
