package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// An Elsewhere is an engine as one on another machine is: it has other files,
// counts other processes, lies in a network namespace of its own, and is reached
// over TCP with TLS.
type Elsewhere struct {
	*Engine
	Address string // tcp://127.0.0.1:PORT, which leads into its network namespace
	Certs   string // a directory with ca.pem, cert.pem and key.pem
}

// tlsPort is where it listens in its namespace.
const tlsPort = 2376

// StartElsewhere starts one, in which the directory hidden is empty. It is removed
// when t ends.
func StartElsewhere(t testing.TB, hidden string) *Elsewhere {
	t.Helper()
	testenv.Need(t, "docker")
	other := "mount -t tmpfs none " + hidden + ` && exec "$@"`
	e, err := launch([]string{"unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", other, "sh"}, tlsPort)
	if err != nil {
		t.Fatalf("engine: %v", err)
	}
	t.Cleanup(func() {
		_ = e.cmd.Process.Signal(unix.SIGKILL) // unshare(1) passes nothing else on
		if err := e.Close(); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go e.forward(l)
	return &Elsewhere{Engine: e, Address: "tcp://" + l.Addr().String(), Certs: filepath.Join(e.Dir, "tls")}
}

// forward carries connections into the engine's network namespace.
func (e *Engine) forward(l net.Listener) {
	for c, err := l.Accept(); err == nil; c, err = l.Accept() {
		go func() {
			defer c.Close()
			other, err := e.Dial(tlsPort)
			if err != nil {
				return
			}
			defer other.Close()
			var both sync.WaitGroup
			both.Go(func() { pipe(other, c) })
			pipe(c, other)
			both.Wait()
		}()
	}
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from) // its end is passed on, whatever it was
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

// Dial connects to a port of 127.0.0.1 in the engine's network namespace.
func (e *Engine) Dial(port int) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		conn, err = dialWithin(e.PID(), port)
	}()
	<-done
	return conn, err
}

func dialWithin(pid, port int) (net.Conn, error) {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "engine")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// makeCerts makes an authority, and certificates of the engine and of who speaks
// to it.
func (e *Engine) makeCerts() error {
	dir := filepath.Join(e.Dir, "tls")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ca, key, err := certificate(dir, "ca", nil, nil)
	if err != nil {
		return err
	}
	_, _, err = certificate(dir, "server", ca, key)
	_, _, err2 := certificate(dir, "client", ca, key)
	at := func(name string) string { return filepath.Join(dir, name) }
	return errors.Join(err, err2, os.Rename(at("client.pem"), at("cert.pem")), os.Rename(at("client-key.pem"), at("key.pem")))
}

// certificate writes NAME.pem and NAME-key.pem. Without an issuer it is its own.
func certificate(dir, name string, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: issuer == nil, BasicConstraintsValid: true,
	}
	if issuer == nil {
		issuer, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, by)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	write := func(file, kind string, b []byte) error {
		return os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600)
	}
	return cert, key, errors.Join(err, write(name+".pem", "CERTIFICATE", der), write(name+"-key.pem", "EC PRIVATE KEY", private))
}
