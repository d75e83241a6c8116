package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// What a client measures. Each is one sample of a round.
const (
	download  = "download"             // of the load's bytes
	connect   = "connect + first byte" // median of new connections
	roundTrip = "round trip"           // median of one byte on an open connection
	parallel  = "200 at a time"        // per connection
	requests  = "requests"             // of HTTPS on kept connections, per request
	p50       = "requests P50"
	p99       = "requests P99"
	setupTime = "set-up"
)

// atOnce is how many connections the client of parallel has open at a time,
// and callers how many connections requests uses.
const (
	atOnce  = 200
	callers = 8
)

// patience is how long one connection may take as a whole.
const patience = time.Minute

// A job is what a client is asked to measure.
type job struct {
	Kind  string `json:"kind"`
	Addr  string `json:"addr,omitempty"` // host:port, or the URL of requests
	N     int64  `json:"n"`              // bytes, connections or requests
	Proxy bool   `json:"proxy,omitempty"`
}

// figures are what it has measured.
type figures map[string]measure.Sample

// take does a job.
func take(j job) (any, error) {
	switch j.Kind {
	case download:
		return j.download()
	case connect:
		return j.connect()
	case parallel:
		return j.parallel()
	case requests:
		return j.requests()
	}
	return nil, fmt.Errorf("job %q: no such kind", j.Kind)
}

func (j job) download() (figures, error) {
	c, err := j.dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	buf := make([]byte, 1<<20)
	began := time.Now()
	if err := ask(c, j.N); err != nil {
		return nil, err
	}
	for left := j.N; left > 0; {
		n, err := c.Read(buf)
		if err != nil {
			return nil, fmt.Errorf("after %d of %d bytes: %w", j.N-left, j.N, err)
		}
		left -= int64(n)
	}
	return figures{download: {Wall: time.Since(began)}}, nil
}

// connect also measures the round trip on each connection that it has made.
func (j job) connect() (figures, error) {
	first, again := make(measure.Series, j.N), make(measure.Series, j.N)
	for i := range j.N {
		began := time.Now()
		c, err := j.dial()
		if err != nil {
			return nil, err
		}
		err = oneByte(c)
		first[i].Wall = time.Since(began)
		began = time.Now()
		err = errors.Join(err, oneByte(c))
		again[i].Wall = time.Since(began)
		if err := errors.Join(err, c.Close()); err != nil {
			return nil, err
		}
	}
	return figures{connect: {Wall: first.Median()}, roundTrip: {Wall: again.Median()}}, nil
}

// parallel opens 200 connections at a time. None may be lost.
func (j job) parallel() (figures, error) {
	began := time.Now()
	err := share(j.N, atOnce, func() error {
		c, err := j.dial()
		if err != nil {
			return err
		}
		return errors.Join(oneByte(c), c.Close())
	})
	return figures{parallel: {Wall: time.Since(began) / time.Duration(j.N)}}, err
}

func (j job) requests() (figures, error) {
	client, err := httpsClient()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	if err := share(callers, callers, func() error { return get(client, j.Addr) }); err != nil { // the handshakes
		return nil, err
	}
	var mu sync.Mutex
	took := make([]time.Duration, 0, j.N)
	began := time.Now()
	err = share(j.N, callers, func() error {
		began := time.Now()
		err := get(client, j.Addr)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(began))
		return err
	})
	all := time.Since(began)
	if err != nil {
		return nil, err
	}
	slices.Sort(took)
	at := func(p int) measure.Sample { return measure.Sample{Wall: took[(len(took)-1)*p/100]} }
	return figures{requests: {Wall: all / time.Duration(j.N)}, p50: at(50), p99: at(99)}, nil
}

// httpsClient trusts SSL_CERT_FILE, which each session may set anew.
func httpsClient() (*http.Client, error) {
	text, err := os.ReadFile(os.Getenv("SSL_CERT_FILE")) //nolint:forbidigo // as any client does
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: callers}
	return &http.Client{Transport: t, Timeout: time.Minute}, nil
}

func get(client *http.Client, at string) error {
	res, err := client.Get(at)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || n != answerSize) {
		err = fmt.Errorf("%s: %s with %d bytes; want 200 with %d", at, res.Status, n, answerSize)
	}
	return errors.Join(err, res.Body.Close())
}

// share does f n times, by so many workers, and returns the first error of one.
func share(n int64, workers int, f func() error) error {
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for range todo {
				if errs[w] = f(); errs[w] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func ask(c net.Conn, n int64) error {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(n))
	_, err := c.Write(size[:])
	return err
}

func oneByte(c net.Conn) error {
	if err := ask(c, 1); err != nil {
		return err
	}
	var b [1]byte
	_, err := io.ReadFull(c, b[:])
	return err
}

// dial connects, through the proxy of the environment where there is no other
// way (HTTP CONNECT, RFC 9110, section 9.3.6).
func (j job) dial() (net.Conn, error) {
	to, proxy := j.Addr, &url.URL{}
	if j.Proxy {
		var err error
		if proxy, err = url.Parse(os.Getenv("HTTPS_PROXY")); err != nil { //nolint:forbidigo // as any client does
			return nil, err
		}
		to = proxy.Host
	}
	c, err := net.DialTimeout("tcp", to, patience) //nolint:forbidigo // it is the guest
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil || !j.Proxy {
		return c, err
	}
	return c, j.tunnel(c, proxy)
}

func (j job) tunnel(c net.Conn, p *url.URL) error {
	q := "CONNECT " + j.Addr + " HTTP/1.1\r\nHost: " + j.Addr + "\r\n"
	if p.User != nil {
		password, _ := p.User.Password()
		q += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.User.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(c, q+"\r\n"); err != nil {
		return err
	}
	r := bufio.NewReader(c) // the server says nothing before it is asked: nothing is lost in it
	res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy says %s", res.Status)
	}
	return nil
}
