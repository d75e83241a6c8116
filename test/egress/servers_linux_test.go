package egress_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Ports outside, on every address.
const (
	portRaw    = 7777 // says back what it is told
	portOdd    = 5433 // the same
	portFirst  = 2525 // speaks first, then says back
	portProxy  = 3128 // CONNECT
	portSocks  = 1080 // SOCKS5
	portAltTLS = 8443 // HTTPS
	portUDP    = 7    // says back what it is told
)

// serveStreams opens everything that is TCP.
func (o *outsider) serveStreams() error {
	conf := &tls.Config{GetCertificate: o.ca.ForHello, NextProtos: []string{"h2", "http/1.1"}, EncryptedClientHelloKeys: echKeys()}
	var errs []error
	for _, s := range []struct {
		port  int
		serve func(net.Listener)
	}{
		{80, func(l net.Listener) { o.serveHTTP("http", l) }},
		{8080, func(l net.Listener) { o.serveHTTP("http", l) }},
		{443, func(l net.Listener) { o.serveHTTP("https", tls.NewListener(l, conf)) }},
		{portAltTLS, func(l net.Listener) { o.serveHTTP("https", tls.NewListener(l, conf)) }},
		{portRaw, func(l net.Listener) { accept(l, o.echo("raw", "")) }},
		{portOdd, func(l net.Listener) { accept(l, o.echo("raw", "")) }},
		{portFirst, func(l net.Listener) { accept(l, o.echo("first", "220 hello\r\n")) }},
		{portProxy, func(l net.Listener) { accept(l, o.connectProxy) }},
	} {
		l, err := shared.Listen(context.Background(), "tcp", ":"+strconv.Itoa(s.port))
		errs = append(errs, err)
		if err == nil {
			go s.serve(l)
		}
	}
	for _, at := range []string{":80", ":443"} { // a host at whose web ports is no web
		l, err := shared.Listen(context.Background(), "tcp", addresses("odd.test")[0]+at)
		errs = append(errs, err)
		if err == nil {
			go accept(l, o.echo("raw", ""))
		}
	}
	return errors.Join(errs...)
}

// shared listens at one address of a port at which another socket has all
// others.
var shared = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }), err)
}}

// servePackets opens everything that is UDP.
func (o *outsider) servePackets() error {
	var errs []error
	for _, port := range []int{portUDP, 443, 4444} {
		// One socket per address: the answer has to come from where the question went.
		all := append([]string{rebindFirst, outsideV4, outsideV6}, unnamed...)
		for name := range hosts {
			all = append(all, addresses(name)...)
		}
		for _, a := range all {
			p, err := net.ListenPacket("udp", net.JoinHostPort(a, strconv.Itoa(port)))
			if err == nil { // several names have one address, and some addresses are the machine's
				go o.echoPackets(p)
			}
		}
	}
	return errors.Join(errs...)
}

func (o *outsider) echoPackets(p net.PacketConn) {
	buf := make([]byte, 2048)
	for {
		n, from, err := p.ReadFrom(buf)
		if err != nil {
			return
		}
		o.saw(event{Server: "udp", Local: p.LocalAddr().String(), Body: string(buf[:n])})
		_, _ = p.WriteTo(buf[:n], from)
	}
}

// echo greets, notes that somebody came and the first line, and says back what
// it hears.
func (o *outsider) echo(name, greeting string) func(net.Conn) {
	return func(c net.Conn) {
		local := c.LocalAddr().String()
		o.saw(event{Server: name, Local: local, Method: "accept", From: c.RemoteAddr().String()})
		if _, err := io.WriteString(c, greeting); err != nil {
			return
		}
		buf := make([]byte, 64<<10)
		for first := true; ; first = false {
			n, err := c.Read(buf)
			if n > 0 && first {
				o.saw(event{Server: name, Local: local, Method: "data", Body: string(buf[:min(n, 400)])})
			}
			if _, werr := c.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
}

// serveHTTP serves every host, HTTP/1.1 and HTTP/2.
func (o *outsider) serveHTTP(name string, l net.Listener) {
	h2c := new(http.Protocols)
	h2c.SetHTTP1(true)
	h2c.SetHTTP2(true)
	h2c.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: o.handler(name), Protocols: h2c, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	_ = srv.Serve(l)
}

// handler notes each request and answers by its path.
func (o *outsider) handler(name string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", greet)
	mux.HandleFunc("/echo", echoRequest)
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("to"), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/bytes", sendBytes)
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) { drip(w, r, 32<<10, 0) })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { drip(w, r, 1, 200*time.Millisecond) })
	mux.HandleFunc("/headers", endlessHeaders)
	mux.HandleFunc("/ws", webSocket)
	o.repositories(mux)
	o.packages(mux)
	o.model(mux)
	mux.HandleFunc(cloud+"/", func(w http.ResponseWriter, r *http.Request) { serveCloud(filepath.Join(o.dir, "cloud"), w, r) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := event{Server: name, Host: r.Host, Method: r.Method, Path: r.RequestURI, Proto: r.Proto, Header: fmt.Sprint(r.Header), From: r.RemoteAddr}
		if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			e.Local = a.String()
		}
		if r.TLS != nil {
			e.SNI = r.TLS.ServerName
		}
		o.saw(e)
		mux.ServeHTTP(w, r)
	})
}

func greet(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)) // a client may mind not being heard
	fmt.Fprintf(w, "this is %s, %s %s\n", r.Host, r.Method, r.URL.Path)
}

// echoRequest says back headers and body.
func echoRequest(w http.ResponseWriter, r *http.Request) {
	for name, values := range r.Header {
		for _, v := range values {
			w.Header().Add("Got-"+name, v)
			fmt.Fprintf(w, "%s: %s\n", name, v)
		}
	}
	_, _ = io.Copy(w, io.LimitReader(r.Body, 1<<20))
}

func sendBytes(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.FormValue("n"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.CopyN(w, zeros{}, n)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// drip sends pieces for a minute, or until nobody listens.
func drip(w http.ResponseWriter, r *http.Request, size int, pause time.Duration) {
	piece := []byte(strings.Repeat("x", size))
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && r.Context().Err() == nil; time.Sleep(pause) {
		if _, err := w.Write(piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// endlessHeaders answers with fields for a minute, or until nobody listens.
func endlessHeaders(w http.ResponseWriter, _ *http.Request) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, err = rw.WriteString("HTTP/1.1 200 OK\r\n")
	for line := "X-More: " + strings.Repeat("x", 4000) + "\r\n"; err == nil; {
		_, err = rw.WriteString(line)
	}
}

// webSocket shakes hands (RFC 6455, section 4.2.2) and says back bytes as they
// come: frames of a client, masked as they are.
func webSocket(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if key == "" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "not a WebSocket", http.StatusBadRequest)
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer c.Close()
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	_ = rw.Flush()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.Copy(c, rw.Reader)
}

// connectProxy is the proxy of a company: it resolves and dials what it is told.
func (o *outsider) connectProxy(c net.Conn) {
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	o.saw(event{Server: "proxy", Local: c.LocalAddr().String(), Method: req.Method, Host: req.Host, Header: fmt.Sprint(req.Header)})
	up, err := net.DialTimeout("tcp", req.Host, 5*time.Second)
	if req.Method != http.MethodConnect || err != nil {
		fmt.Fprint(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	defer up.Close()
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(up, r); _ = up.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(c, up)
}
