package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Ports of the servers, which have the namespace to themselves.
const (
	portBytes  = "9000" // sends as many bytes as it is asked for
	portOrigin = "9443" // speaks HTTPS
	portProxy  = "9444" // a plain reverse proxy before it
)

// answerSize is the size of the origin's answer, in bytes.
const answerSize = 1000

// startServer serves until the process is ended. The question is the directory
// of the certificates.
func startServer(dir string) (any, error) {
	l, err := net.Listen("tcp", ":"+portBytes)
	if err != nil {
		return nil, err
	}
	go serveBytes(l)
	answer := []byte(strings.Repeat("x", answerSize))
	return nil, serveTLS(dir, portOrigin, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(answer) // the client counts what it gets
	}))
}

// startProxy serves what an opened host is compared with: the standard
// library's reverse proxy, with TLS on both sides.
func startProxy(dir string) (any, error) {
	roots, err := trusted(dir)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: net.JoinHostPort(hostName, portOrigin)})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 100}
	proxy.ErrorLog = quiet
	return nil, serveTLS(dir, portProxy, proxy)
}

var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)

func serveTLS(dir, port string, h http.Handler) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.ServeTLS(l, certFile(dir), filepath.Join(dir, "key.pem")) }()
	return nil
}

// serveBytes sends each client as many bytes as it asks for in 8 bytes, again
// and again.
func serveBytes(l net.Listener) {
	buf := make([]byte, 1<<20)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for sendBytes(c, buf) == nil {
			}
		}()
	}
}

func sendBytes(c net.Conn, buf []byte) error {
	var size [8]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	for n := binary.BigEndian.Uint64(size[:]); n > 0; {
		k, err := c.Write(buf[:min(n, uint64(len(buf)))])
		if err != nil {
			return err
		}
		n -= uint64(k)
	}
	return nil
}

func certFile(dir string) string { return filepath.Join(dir, "cert.pem") }

// trusted are the roots that a client of the servers needs.
func trusted(dir string) (*x509.CertPool, error) {
	text, err := os.ReadFile(certFile(dir))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("cert.pem holds no certificate")
	}
	return pool, nil
}

// makeCertificates makes a certificate for the origin and the reverse proxy,
// which is its own authority.
func makeCertificates(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hostName}, DNSNames: []string{hostName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(certFile(dir), "CERTIFICATE", der), writePEM(filepath.Join(dir, "key.pem"), "PRIVATE KEY", private))
}

// writePEM writes what every user may read: it is worth nothing elsewhere.
func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644)
}
