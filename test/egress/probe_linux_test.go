package egress_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// probeArgument makes this binary a client: see probes.
const probeArgument = "probe"

// probes are clients that do what no honest one does. They print what they
// were told, and fail when they were told nothing.
var probes = map[string]func(args []string) error{
	"tcp":  probeTCP,    // ADDRESS [TEXT]: connect, write, print what comes
	"ping": probePing,   // ADDRESS: an ICMP echo request
	"tls":  probeTLS,    // ADDRESS SNI HOST [PATH]: one HTTP/1.1 request
	"ech":  probeECH,    // ADDRESS SNI OUTER: one HTTP/1.1 request, the name hidden behind another
	"text": probeTLSRaw, // ADDRESS SNI TEXT: what a client would not say, over TLS
	"get":  probeGet,    // URL: as any program in Go does
	"h2":   probeH2,     // ADDRESS SNI AUTHORITY [PATH]: one HTTP/2 request
	"udp":  probeUDP,    // ADDRESS TEXT: send and wait for an answer
	"dns":  probeDNS,    // NETWORK ADDRESS TYPE NAME: ask, print the answer's code and records
	"ws":   probeWS,     // ADDRESS SNI HOST PATH: shake hands, send a frame, print it back
	"many": probeMany,   // NUMBER AT-A-TIME ADDRESS: echo over each
	"hold": probeHold,   // ADDRESS: echo every 50 ms until it fails, then connect again
	"ask":  probeAsk,    // NUMBER ADDRESS: connections at the same time
}

const probeTimeout = 30 * time.Second

func probe(args []string) int {
	if len(args) == 0 || probes[args[0]] == nil {
		fmt.Fprintln(os.Stderr, "probe: unknown:", args)
		return 2
	}
	if err := probes[args[0]](args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		return 1
	}
	return 0
}

// unquoted understands \r\n and \x00 in an argument.
func unquoted(s string) string {
	if u, err := strconv.Unquote(`"` + s + `"`); err == nil {
		return u
	}
	return s
}

func dial(network, addr string) (net.Conn, error) {
	c, err := net.DialTimeout(network, addr, probeTimeout)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(probeTimeout))
	}
	return c, err
}

func probeTCP(args []string) error {
	c, err := dial("tcp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	for _, text := range args[1:] {
		if _, err := io.WriteString(c, unquoted(text)); err != nil {
			return err
		}
	}
	return printAnswer(c)
}

// printAnswer prints what comes until there is a pause, and fails if nothing
// does.
func printAnswer(c net.Conn) error {
	buf := make([]byte, 4096)
	any := false
	for wait := 5 * time.Second; ; wait = 500 * time.Millisecond {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(buf)
		fmt.Printf("%s", buf[:n])
		any = any || n > 0
		switch {
		case err == nil:
		case any:
			return nil
		default:
			return fmt.Errorf("nothing came: %w", err)
		}
	}
}

// probePing sends an echo request (RFC 792) from a socket that needs no capability.
func probePing(args []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 3}); err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Addr: netip.MustParseAddr(args[0]).As4()}
	if err := unix.Sendto(fd, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 0, to); err != nil {
		return err
	}
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) { // what times out is not restarted: signal(7)
		_, _, err = unix.Recvfrom(fd, make([]byte, 64), 0)
	}
	if err != nil {
		return err
	}
	fmt.Println("pong")
	return nil
}

// dialTLS accepts any certificate: the test is about the name that the probe sends.
func dialTLS(addr, sni string, protos ...string) (*tls.Conn, error) {
	c, err := dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	t := tls.Client(c, &tls.Config{ServerName: sni, InsecureSkipVerify: true, NextProtos: protos})
	if err := t.Handshake(); err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

func probeTLS(args []string) error {
	path := append(args, "/")[3]
	return talkTLS(args[0], &tls.Config{ServerName: args[1]}, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, args[2]))
}

func probeGet(args []string) error {
	c := http.Client{Timeout: probeTimeout}
	resp, err := c.Get(args[0])
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.Proto, resp.Status)
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

func probeTLSRaw(args []string) error {
	return talkTLS(args[0], &tls.Config{ServerName: args[1]}, unquoted(args[2]))
}

func probeECH(args []string) error {
	conf := &tls.Config{ServerName: args[1], EncryptedClientHelloConfigList: echConfigList(args[2]), MinVersion: tls.VersionTLS13}
	return talkTLS(args[0], conf, fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", args[1]))
}

// talkTLS says something and prints what comes back.
func talkTLS(addr string, conf *tls.Config, text string) error {
	c, err := dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	conf.InsecureSkipVerify = true
	t := tls.Client(c, conf)
	if _, err := io.WriteString(t, text); err != nil {
		return err
	}
	return printAnswer(t)
}

// probeH2 sends one request's headers by hand, so that :authority is free.
func probeH2(args []string) error {
	c, err := dialTLS(args[0], args[1], "h2")
	if err != nil {
		return err
	}
	defer c.Close()
	if p := c.ConnectionState().NegotiatedProtocol; p != "h2" {
		return fmt.Errorf("protocol is %q", p)
	}
	var block strings.Builder
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", args[2]}, {":path", append(args, "/")[3]}} {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return err
	}
	fr := http2.NewFramer(c, c)
	head := http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true}
	if err := errors.Join(fr.WriteSettings(), fr.WriteHeaders(head)); err != nil {
		return err
	}
	return printH2(fr)
}

// printH2 prints the answer to the first stream.
func printH2(fr *http2.Framer) error {
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return err
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			fmt.Println("status", f.PseudoValue("status"))
			if f.StreamEnded() {
				return nil
			}
		case *http2.DataFrame:
			fmt.Printf("%s", f.Data())
			if f.StreamEnded() {
				return nil
			}
		case *http2.RSTStreamFrame:
			return fmt.Errorf("stream ended: %v", f.ErrCode)
		case *http2.GoAwayFrame:
			return fmt.Errorf("connection ended: %v %s", f.ErrCode, f.DebugData())
		}
	}
}

func probeUDP(args []string) error {
	c, err := dial("udp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, unquoted(args[1])); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
	buf := make([]byte, 2048)
	n, err := c.Read(buf)
	fmt.Printf("%s", buf[:n])
	return err
}

// questionTypes by their names.
var questionTypes = map[string]dnsmessage.Type{
	"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "TXT": dnsmessage.TypeTXT, "NULL": 10, "ANY": dnsmessage.TypeALL,
	"MX": dnsmessage.TypeMX, "CNAME": dnsmessage.TypeCNAME, "SRV": dnsmessage.TypeSRV, "PTR": dnsmessage.TypePTR, "HTTPS": 65,
}

func probeDNS(args []string) error {
	name, err := dnsmessage.NewName(args[3])
	if err != nil {
		return err
	}
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: questionTypes[args[2]], Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		return err
	}
	answer, err := exchange(args[0], args[1], packed)
	if err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return err
	}
	fmt.Println(m.RCode, len(m.Answers))
	for _, a := range m.Answers {
		fmt.Println(a.Body.GoString())
	}
	if len(m.Answers) == 0 {
		return errors.New("no answer to the question")
	}
	return nil
}

// exchange sends a query and waits for its answer.
func exchange(network, addr string, query []byte) ([]byte, error) {
	c, err := dial(network, addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 4096)
	if network != "tcp" {
		if _, err := c.Write(query); err != nil {
			return nil, err
		}
		n, err := c.Read(buf)
		return buf[:n], err
	}
	if _, err := c.Write(append([]byte{byte(len(query) >> 8), byte(len(query))}, query...)); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, buf[:2]); err != nil {
		return nil, err
	}
	n := int(buf[0])<<8 | int(buf[1])
	_, err = io.ReadFull(c, buf[:min(n, len(buf))])
	return buf[:min(n, len(buf))], err
}

func probeWS(args []string) error {
	c, err := dialTLS(args[0], args[1], "http/1.1")
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", args[3], args[2])
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	fmt.Println("status", resp.StatusCode)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return errors.New("no WebSocket")
	}
	frame := []byte("\x81\x85\x00\x00\x00\x00hello") // one text frame, masked with zeros
	if _, err := c.Write(frame); err != nil {
		return err
	}
	back := make([]byte, len(frame))
	if _, err := io.ReadFull(r, back); err != nil {
		return err
	}
	fmt.Printf("%s\n", back[6:])
	return nil
}

// probeMany wants an echo over each of many connections.
func probeMany(args []string) error {
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	workers, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	jobs, failed := make(chan int), make(chan error)
	for range workers {
		go func() {
			for i := range jobs {
				failed <- echoOnce(args[2], fmt.Sprintf("connection %d\n", i))
			}
		}()
	}
	go func() {
		for i := range number {
			jobs <- i
		}
	}()
	lost := 0
	for range number {
		if err := <-failed; err != nil {
			lost++
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Println(number-lost, "of", number)
	return nil
}

func echoOnce(addr, text string) error {
	c, err := net.DialTimeout("tcp", addr, 30*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	back := make([]byte, len(text))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if string(back) != text {
		return fmt.Errorf("%q came back as %q", text, back)
	}
	return nil
}

// probeHold tells when a connection ends, and whether another can be made.
func probeHold(args []string) error {
	c, err := net.DialTimeout("tcp", args[0], probeTimeout)
	if err != nil {
		return err
	}
	fmt.Println("connected")
	for range 400 {
		_ = c.SetDeadline(time.Now().Add(probeTimeout))
		if _, err = io.WriteString(c, "x"); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		if err != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("ended:", err)
	begin := time.Now()
	_, err = dial("tcp", args[0])
	fmt.Printf("again: %v, at once: %v\n", err, time.Since(begin) < probeTimeout/2)
	return nil
}

// probeAsk makes connections at the same time and prints how each ended.
func probeAsk(args []string) error {
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	ended := make(chan error)
	for i := range number {
		go func() {
			ended <- echoOnce(args[1], fmt.Sprintf("asked %d\n", i))
		}()
	}
	for range number {
		fmt.Println("ended:", <-ended)
	}
	return nil
}
