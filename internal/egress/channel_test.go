package egress

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// one is a message of each kind.
var one = []Message{
	{Hello: &Hello{Protocol: "1", Release: "1.2.3", Program: "/bin/bawn"}},
	{Config: &Config{Session: "s", Mode: bawn.ModeStrict, Ask: time.Minute, Rules: []bawn.Rule{}, Place: "/p"}},
	{Ready: &Ready{Files: []File{{"/a", "/b"}}, Env: []string{"A=b"}, Notes: []string{"n"}}},
	{Placed: true},
	{Serving: true},
	{Ask: &Question{ID: 7, Action: bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "a.example:443"}, Reason: "r\n\u202e", Until: time.Unix(1, 0).UTC()}},
	{Withdraw: 7},
	{Answer: &Answer{ID: 7, Answer: bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession}}},
	{Stale: true},
	{Rules: &Rules{Rules: []bawn.Rule{}}},
	{Denial: &Denial{Operation: bawn.Connect, Resource: "a.example:443"}},
	{Failed: "it can't"},
}

// stream is what one side has written.
type stream struct {
	io.Reader
	io.Writer
}

func (stream) Close() error { return nil }

func reads(frames string) *Channel { return NewChannel(stream{strings.NewReader(frames), io.Discard}) }

// framed is a message as package ipc writes it.
func framed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestMessagesArrive(t *testing.T) {
	a, b := net.Pipe()
	from, to := NewChannel(a), NewChannel(b)
	var all sync.WaitGroup
	all.Go(func() {
		for _, m := range one {
			if err := from.Send(m); err != nil {
				t.Error(err)
			}
		}
		from.Close()
	})
	for _, want := range one {
		got, err := to.Receive()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("(-want +got) %v\n%s", err, diff)
		}
	}
	if m, err := to.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %+v, %v", m, err)
	}
	all.Wait()
}

// Many who send at once do not write into each other's frames.
func TestSendTogether(t *testing.T) {
	a, b := net.Pipe()
	from, to := NewChannel(a), NewChannel(b)
	var all sync.WaitGroup
	for i := range uint64(50) {
		all.Go(func() {
			from.Send(Message{Answer: &Answer{ID: i + 1, Answer: bawn.Answer{By: strings.Repeat("x", 9000)}}})
		})
	}
	seen := map[uint64]bool{}
	for range 50 {
		m, err := to.Receive()
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Answer.ID] = true
	}
	all.Wait()
	if len(seen) != 50 {
		t.Errorf("%d messages arrived; want 50", len(seen))
	}
}

// Everything that is not exactly one message is refused, from either side.
func TestHostileMessages(t *testing.T) {
	for _, line := range []string{
		"", "\n", "{}", "null", "[]", "1", "{", "\x00",
		`{"serving":false}`, `{"withdraw":0}`, `{"failed":""}`, `{"answer":null}`,
		`{"serving":true,"withdraw":1}`, `{"answer":{"id":1,"answer":{}},"failed":"x"}`, `{"ask":{},"denial":{}}`, `{"ask":{}}`, `{"denial":{}}`,
		`{"serving":true}{"serving":true}`, `{"serving":true} 1`, `{"serving":true}]`,
		`{"serving":true,"more":1}`, `{"answer":{"id":1,"verdict":"allow"}}`, `{"answer":{"id":-1}}`, `{"answer":{"id":"1"}}`,
		`{"serving":`,
	} {
		if m, err := reads(framed(line)).Receive(); err == nil {
			t.Errorf("%q became %+v", line, m)
		}
	}
	for _, cut := range []string{"", "\x00", framed(`{"serving":true}`)[:9]} { // the writer died over it
		if m, err := reads(cut).Receive(); err == nil || errors.Is(err, io.EOF) != (cut == "") {
			t.Errorf("%q became %+v, %v", cut, m, err)
		}
	}
	if m, err := reads(framed(`{"serving":true}`)).Receive(); err != nil || !m.Serving {
		t.Errorf("control: %+v, %v", m, err)
	}
	var out bytes.Buffer
	c := NewChannel(stream{&out, &out})
	for _, m := range []Message{{}, {Serving: true, Failed: "x"}, {Answer: &Answer{}, Withdraw: 1}} {
		if err := c.Send(m); err == nil || out.Len() > 0 {
			t.Errorf("sent %+v: %v", m, err)
		}
	}
}

// The longest message passes, a longer one is refused by both sides.
func TestLongMessages(t *testing.T) {
	var out bytes.Buffer
	c := NewChannel(stream{&out, &out})
	own := len(`{"failed":""}`)
	if err := c.Send(Message{Failed: strings.Repeat("x", maxMessage-own+1)}); err == nil {
		t.Error("sent a message above the limit")
	}
	longest := Message{Failed: strings.Repeat("x", maxMessage-own)}
	if err := c.Send(longest); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Receive(); err != nil || m != longest {
		t.Errorf("got %d bytes, %v", len(m.Failed), err)
	}
	if _, err := reads(framed(`{"failed":"` + strings.Repeat("x", maxMessage) + `"}`)).Receive(); err == nil {
		t.Error("received a longer one")
	}
	if _, err := NewChannel(stream{endless{}, nil}).Receive(); err == nil {
		t.Error("received a message without end")
	}
}

// endless is a stream that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// FuzzReceive: what is received has exactly one field, and means the same when
// it is sent on.
func FuzzReceive(f *testing.F) {
	for _, m := range one {
		line, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(framed(string(line))))
	}
	f.Add([]byte(framed(`{"SERVING":true,"serving":false}`)))
	f.Add([]byte(framed(`{"answer":{},"answer":null}`) + framed(`{"serving":true}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := NewChannel(stream{bytes.NewReader(text), io.Discard})
		for {
			m, err := c.Receive()
			if err != nil {
				if diff := cmp.Diff(Message{}, m); diff != "" {
					t.Errorf("with an error came %s", diff)
				}
				return
			}
			var fields map[string]json.RawMessage
			line, err := json.Marshal(m)
			if err := errors.Join(err, json.Unmarshal(line, &fields)); err != nil || len(fields) != 1 {
				t.Fatalf("%q became %s: %v", text, line, err)
			}
			again, err := reads(framed(string(line))).Receive()
			same, failed := json.Marshal(again)
			if err := errors.Join(err, failed); err != nil || !bytes.Equal(same, line) {
				t.Errorf("%q: %s, then %s, %v", text, line, same, err)
			}
		}
	})
}
