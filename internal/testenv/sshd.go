package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// An SSHServer is OpenSSH's sshd on loopback, with keys of its own, in which
// the user of the test may log in as themselves. One process serves each
// connection (sshd -i), so none is left behind.
type SSHServer struct {
	Addr    *net.TCPAddr
	User    string // who may log in
	Key     string // file of the private key that may log in; Key+".pub" is beside it
	HostKey string // the public host key as known_hosts has it, without a name
	Log     func() string
}

// StartSSHD starts a server for the length of the test. Call Need(t, "sshd")
// first. config are further lines of sshd_config(5); dir is a directory for
// the keys.
func StartSSHD(t testing.TB, dir string, config ...string) SSHServer {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := SSHServer{User: me.Username, Key: filepath.Join(dir, "id")}
	hostKey := filepath.Join(dir, "host")
	for _, file := range []string{hostKey, s.Key} {
		must(t, runs("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", file)())
	}
	s.HostKey = publicKey(t, hostKey)
	file := filepath.Join(dir, "sshd_config")
	lines := append([]string{
		"HostKey " + hostKey, "AuthorizedKeysFile " + s.Key + ".pub", "StrictModes no", "UsePAM no", "PidFile none",
		"PermitRootLogin yes", "AcceptEnv GIT_PROTOCOL", "LogLevel VERBOSE", "Subsystem sftp internal-sftp",
	}, config...)
	must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	if os.Getuid() == 0 { // sshd(8): its privilege separation wants this directory
		must(t, os.MkdirAll("/run/sshd", 0o755))
	}
	s.Addr, s.Log = serveSSH(t, file, filepath.Join(dir, "sshd.log"))
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// publicKey returns type and key of the public half of a key file.
func publicKey(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file + ".pub")
	must(t, err)
	return strings.Join(strings.Fields(string(text))[:2], " ")
}

// serveSSH hands each connection to a process.
func serveSSH(t testing.TB, config, log string) (*net.TCPAddr, func() string) {
	t.Helper()
	sshd, err := SSHD()
	must(t, err)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			all.Go(func() { serveOne(ctx, conn, sshd, "-i", "-f", config, "-E", log) })
		}
	})
	return l.Addr().(*net.TCPAddr), func() string {
		text, err := os.ReadFile(log)
		return fmt.Sprint(string(text), err)
	}
}

// serveOne gives a connection to one process as its standard input and output.
func serveOne(ctx context.Context, conn *net.TCPConn, program string, args ...string) {
	file, err := conn.File()
	conn.Close()
	if err != nil {
		return
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.WaitDelay = file, file, time.Second
	if cmd.Start() == nil {
		_ = cmd.Wait() // its status is the client's to see
	}
}
