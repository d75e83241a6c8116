package dns

import (
	"bytes"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzPacket: whatever arrives, the server does not panic, answers
// what it was asked and nobody else, in at most 512 bytes, with little more
// than it was sent, and never an answer.
func FuzzPacket(f *testing.F) {
	s := newServer("open.example")
	addr, err := s.Names.Address("open.example", false)
	if err != nil {
		f.Fatal(err)
	}
	for _, a := range []ask{
		{name: "open.example.", typ: dnsmessage.TypeA, edns: 1232},
		{name: "OPEN.example.", typ: dnsmessage.TypeAAAA},
		{name: "closed.example.", typ: dnsmessage.TypeTXT, edns: 512},
		{name: reverseName(addr), typ: dnsmessage.TypePTR, edns: 1},
		{name: "open.example.", typ: 255, version: 1, edns: 4096},
		{name: "open.example.", typ: 1, twice: true, counts: [4]uint16{1, 0, 0, 3}},
	} {
		f.Add(a.pack(f))
	}
	f.Add([]byte("\x01a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x01\x00\x01")) // a name in the header
	f.Add(bytes.Repeat([]byte{0xc0, 0x0c}, 20))
	f.Fuzz(func(t *testing.T, msg []byte) {
		prefix := []byte("xy")
		r := s.respond(prefix, msg)
		if r == nil {
			return
		}
		if !bytes.HasPrefix(r, prefix) {
			t.Fatal("what stood before is lost")
		}
		r = r[2:]
		if len(msg) < 12 || msg[2]&0x80 != 0 {
			t.Fatalf("%x gets an answer: %x", msg, r)
		}
		if len(r) > 512 || len(r) > len(msg)+280 || !bytes.Equal(r[:2], msg[:2]) || r[2]&0x80 == 0 {
			t.Fatalf("%x gets %x", msg, r)
		}
		if m := unpack(t, r); len(m.Questions) == 1 && !bytes.Contains(msg, r[12:12+int(m.Questions[0].Name.Length)]) {
			t.Fatalf("%x gets an answer to another question: %x", msg, r)
		}
		if again := s.respond(nil, r); again != nil {
			t.Fatalf("an answer to the answer %x: %x", r, again)
		}
	})
}
