package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/peercred"
	"github.com/bawn-dev/bawn/internal/testenv"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// peerSocket is the variable that makes the test's binary a peer of the socket
// that it names.
const peerSocket = "BAWN_API_TEST_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(peerSocket); path != "" {
		answer, err := Client(path).Post("http://relay"+bawnv1connect.ApprovalServiceAnswerProcedure, "application/json", strings.NewReader(`{"id":"`+os.Args[1]+`","verdict":"VERDICT_ALLOW"}`))
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		text, _ := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, string(text))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestGuestsCannotAnswer (P10): a process in a namespace of its own, or below a
// host of sessions, can't approve. The control is the same program as the
// user's own.
func TestGuestsCannotAnswer(t *testing.T) {
	testenv.Need(t, "userns")
	self := func(pid int) bool { return pid == os.Getpid() }
	for name, one := range map[string]struct {
		hosts func(int) bool
		attr  *syscall.SysProcAttr
		want  string
	}{
		"the user's own program": {nil, nil, "200"},
		"in a user namespace": {nil, &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		}, "403"},
		"below a host of sessions": {self, nil, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			refused := make(chan error, 10)
			server := &Socket{API: r.API, Caller: human, Check: func(c net.Conn) error {
				err := peercred.Admit(c, one.hosts)
				refused <- err
				return err
			}}
			client := socket(t, server)
			id, _ := r.ask(t)
			cmd := exec.Command(os.Args[0], id)
			cmd.Env = append(os.Environ(), peerSocket+"="+pathOf(client))
			cmd.SysProcAttr = one.attr
			out, err := cmd.Output()
			if err != nil || !strings.HasPrefix(string(out), one.want+" ") {
				t.Errorf("%v: %s; want %s; %v", err, out, one.want, <-refused)
			}
			list, err := r.queue.List(t.Context())
			if err != nil || (len(list) == 0) != (one.want == "200") {
				t.Errorf("%d questions are pending: %v", len(list), err)
			}
		})
	}
}

func pathOf(client *http.Client) string { return client.Transport.(keyed).path }

// TestSocket: a socket without a check, or whose check fails, refuses every call,
// over HTTP/1.1 and HTTP/2, in Connect's and gRPC's protocol. So does one whose
// caller has another key. The control has the key and passes the check.
func TestSocket(t *testing.T) {
	for name, one := range map[string]struct {
		check func(net.Conn) error
		key   string // in place of the socket's
		want  connect.Code
	}{
		"open":        {func(net.Conn) error { return nil }, "", 0},
		"closed":      {func(net.Conn) error { return errors.New("no") }, "", connect.CodePermissionDenied},
		"no check":    {nil, "", connect.CodePermissionDenied},
		"another key": {func(net.Conn) error { return nil }, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", connect.CodePermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var keyless atomic.Int32
			client := socket(t, &Socket{API: r.API, Caller: human, Check: one.check, Keyless: func(error) { keyless.Add(1) }})
			if one.key != "" {
				if err := os.WriteFile(link.KeyOf(pathOf(client)), []byte(one.key), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			two := Client(pathOf(client))
			var protocols http.Protocols
			protocols.SetUnencryptedHTTP2(true)
			two.Transport.(keyed).under.(*http.Transport).Protocols = &protocols
			for protocol, c := range map[string]bawnv1connect.SystemServiceClient{
				"HTTP/1.1": bawnv1connect.NewSystemServiceClient(client, "http://relay", connect.WithProtoJSON()),
				"HTTP/2":   bawnv1connect.NewSystemServiceClient(two, "http://relay"),
				"gRPC":     bawnv1connect.NewSystemServiceClient(two, "http://relay", connect.WithGRPC()),
			} {
				m, err := c.Get(t.Context(), &bawnv1.SystemServiceGetRequest{})
				if err == nil != (one.want == 0) || err != nil && connect.CodeOf(err) != one.want {
					t.Errorf("%s: %v %v; want %v", protocol, m, err, one.want)
				}
			}
			if n := keyless.Load(); (n == 3) != (one.key != "") {
				t.Errorf("%d requests without the key were told", n)
			}
		})
	}
}

// socket serves the API on a unix socket and returns a client for it.
func socket(t *testing.T, s *Socket) *http.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	s.Log = slog.New(slog.DiscardHandler)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	testenv.Until(t, "the socket's key", func() bool { _, err := os.Stat(link.KeyOf(path)); return err == nil })
	return Client(path)
}
