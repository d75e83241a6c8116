package refuse

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
)

// accessDenied is the fatal alert 49 (RFC 8446 section 6.2) in a record.
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

// response is a whole answer of HTTP/1.
func (d Denial) response(method, accept string) []byte {
	text, contentType := d.body(accept)
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 403 Forbidden\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nConnection: close\r\nX-Bawn-Denied: %s\r\n\r\n",
		contentType, len(text), d.header())
	if method != "HEAD" {
		b.Write(text)
	}
	return b.Bytes()
}

// Frames of HTTP/2 (RFC 9113 section 6) and their flags.
const (
	frameData     = 0
	frameHeaders  = 1
	frameSettings = 4
	frameGoAway   = 7

	flagAck        = 1
	flagEndStream  = 1
	flagEndHeaders = 4

	prefaceLength = 24
	maxFrame      = 1 << 14 // the methods that a client may send without permission
	maxFrames     = 100     // before its first request
)

// stream answers the first request of an HTTP/2 connection and ends the
// connection. Our settings go first: some clients wait for them.
func (d Denial) stream(conn net.Conn, raw []byte) error {
	if _, err := conn.Write(frame(frameSettings, 0, 0, nil)); err != nil {
		return err
	}
	id, err := firstRequest(io.MultiReader(bytes.NewReader(raw), conn))
	if err != nil {
		return err
	}
	text, contentType := d.body("")
	fields := literal(":status", "403") + literal("content-type", contentType) +
		literal("content-length", strconv.Itoa(len(text))) + literal("x-bawn-denied", d.header())
	goAway := binary.BigEndian.AppendUint32(nil, id)
	goAway = append(append(goAway, 0, 0, 0, 0), d.String()...) // NO_ERROR
	_, err = conn.Write(bytes.Join([][]byte{
		frame(frameSettings, flagAck, 0, nil),
		frame(frameHeaders, flagEndHeaders, id, []byte(fields)),
		frame(frameData, flagEndStream, id, text),
		frame(frameGoAway, 0, 0, goAway),
	}, nil))
	return err
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b := binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream)
	return append(b, payload...)
}

// literal is a field that stays out of the table, without Huffman coding (RFC
// 7541 section 6.2.2). Name and value are shorter than 127 bytes.
func literal(name, value string) string {
	return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
}

// firstRequest reads frames, which begin behind the preface, up to the first
// request and returns its stream.
func firstRequest(conn io.Reader) (uint32, error) {
	r := bufio.NewReader(conn)
	if _, err := r.Discard(prefaceLength); err != nil {
		return 0, err
	}
	for range maxFrames {
		var h [9]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return 0, err
		}
		n := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
		if h[3] == frameHeaders {
			return binary.BigEndian.Uint32(h[5:]) &^ (1 << 31), nil
		}
		if n > maxFrame {
			return 0, fmt.Errorf("a frame of %d bytes; want at most %d", n, maxFrame)
		}
		if _, err := r.Discard(n); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no request in %d frames", maxFrames)
}

// disconnect is a server's banner and SSH_MSG_DISCONNECT with the reason
// SSH_DISCONNECT_BY_APPLICATION (RFC 4253 sections 4.2, 6 and 11.1), which may
// come before any keys are exchanged. OpenSSH prints its text.
func (d Denial) disconnect() []byte {
	const message, byApplication = 1, 11
	text := d.String()
	payload := binary.BigEndian.AppendUint32([]byte{message}, byApplication)
	payload = append(binary.BigEndian.AppendUint32(payload, uint32(len(text))), text...)
	payload = append(payload, 0, 0, 0, 0) // no language
	padding := 4 + (8-(5+len(payload)+4)%8)%8
	b := []byte("SSH-2.0-bawn\r\n")
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(payload)+padding))
	b = append(append(b, byte(padding)), payload...)
	return append(b, make([]byte, padding)...)
}
