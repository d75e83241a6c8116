package ssh_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"github.com/bawn-dev/bawn/internal/egress/hostkey"
	"github.com/bawn-dev/bawn/internal/egress/ssh"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// flooded is a server without a host behind it, with what it needs to be talked to.
func flooded(t *testing.T) (server *ssh.Server, connect func() *xssh.Client) {
	key, err := ssh.NewHostKey()
	must(t, err)
	server = &ssh.Server{
		HostKey: key, Known: &hostkey.Known{}, Keys: ssh.FileKeys(), Room: ssh.NewRoom(),
		Dial:   func(context.Context, string, uint16) (net.Conn, error) { return nil, errors.New("no host") },
		Permit: func(context.Context, ssh.Request) error { return nil }, Used: func(ssh.Use) error { return nil },
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = server.Serve(t.Context(), conn, host, 22) }()
		}
	}()
	return server, func() *xssh.Client {
		client, err := xssh.Dial("tcp", l.Addr().String(), &xssh.ClientConfig{User: "git", HostKeyCallback: xssh.InsecureIgnoreHostKey()})
		must(t, err)
		t.Cleanup(func() { client.Close() })
		return client
	}
}

// TestFloodOfSessions: each session of SSH can make us hold 2 MiB before it has said
// what it wants, so there are 32, over all connections. When one has ended, another is
// served.
func TestFloodOfSessions(t *testing.T) {
	const most = 32
	_, connect := flooded(t)
	var open []xssh.Channel
	var last *xssh.Client
	for range 5 {
		last = connect()
		for range 10 {
			channel, requests, err := last.OpenChannel("session", nil)
			if err != nil {
				continue
			}
			go xssh.DiscardRequests(requests)
			open = append(open, channel)
		}
	}
	if len(open) != most {
		t.Fatalf("%d sessions are open at a time, want %d", len(open), most)
	}
	_, _, err := last.OpenChannel("session", nil)
	var refused *xssh.OpenChannelError
	if !errors.As(err, &refused) || refused.Reason != xssh.ResourceShortage {
		t.Errorf("one more gets %v", err)
	}
	open[0].Close()
	testenv.Until(t, "another session", func() bool {
		_, requests, err := last.OpenChannel("session", nil)
		if err == nil {
			go xssh.DiscardRequests(requests)
		}
		return err == nil
	})
}

// TestFloodOfConnections: one connection beyond the limit waits, until it is given up or
// another has ended.
func TestFloodOfConnections(t *testing.T) {
	const most = 64
	server, connect := flooded(t)
	var all []*xssh.Client
	for range most {
		all = append(all, connect())
	}
	waits, cancel := context.WithCancel(t.Context())
	cancel()
	guest, ours := net.Pipe()
	defer guest.Close()
	if err := server.Serve(waits, ours, host, 22); err == nil || !strings.Contains(err.Error(), "64 connections") {
		t.Errorf("one more gets %v", err)
	}
	connected := make(chan struct{})
	go func() { connect(); close(connected) }()
	all[0].Close()
	testenv.Receive(t, "the waiting connection", connected)
}
