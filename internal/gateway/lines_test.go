package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

type sink struct{ bytes.Buffer }

func (*sink) Close() error { return nil }

func linesOf(text string, most int) (*lines, *sink) {
	out := &sink{}
	return newLines(io.NopCloser(strings.NewReader(text)), out, most), out
}

// TestLines reads what one side may send, and what it may not.
func TestLines(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	long := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 9000) + `"}`
	for name, c := range map[string]struct {
		text string
		want int // messages
		err  bool
	}{
		"one": {ping + "\n", 1, false}, "two": {ping + "\n" + ping + "\n", 2, false}, "without an end": {ping, 1, false}, "empty lines": {"\n \r\n" + ping + "\r\n\n", 1, false},
		"longer than the buffer": {long + "\n", 1, false}, "several as one": {"[" + ping + `,{"jsonrpc":"2.0","method":"x"}]` + "\n", 2, false},
		"two in a line": {ping + ping + "\n", 0, true}, "too long": {strings.Replace(long, "x", strings.Repeat("x", 12000), 1) + "\n", 0, true}, "no message": {"hello\n", 0, true},
		"none as one": {"[]\n", 0, true}, "one twice as one": {"[" + ping + "," + ping + "]\n", 0, true}, "cut off": {ping[:20], 0, true}, "another version": {`{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n", 0, true},
		"a version in capitals": {`{"JSONRPC":"2.0","id":1,"method":"ping"}` + "\n", 0, true}, "a list as ID": {`{"jsonrpc":"2.0","id":[1],"method":"ping"}` + "\n", 0, true}, "nothing at all": {`{"jsonrpc":"2.0"}` + "\n", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := linesOf(c.text, 16<<10)
			n := 0
			var err error
			for ; err == nil; n++ {
				_, err = l.Read(t.Context())
			}
			if n-1 != c.want || errors.Is(err, io.EOF) == c.err {
				t.Errorf("%d messages and %v", n-1, err)
			}
		})
	}
}

// TestLinesAnswerABatchAsOne has answers wait for each other, and others not.
func TestLinesAnswerABatchAsOne(t *testing.T) {
	l, out := linesOf(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":"b","method":"b"}]`+"\n"+`{"jsonrpc":"2.0","id":3,"method":"c"}`, 1000)
	var got []jsonrpc.ID
	for range 3 {
		m, err := l.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.(*jsonrpc.Request).ID)
	}
	for _, i := range []int{1, 2, 0} {
		if err := l.Write(t.Context(), &jsonrpc.Response{ID: got[i], Result: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"jsonrpc":"2.0","id":3,"result":{}}` + "\n" + `[{"jsonrpc":"2.0","id":"b","result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" || len(l.batches) > 0 {
		t.Errorf("%s, and %d wait", d, len(l.batches))
	}
}

// stuck can't be closed while it is read, as a terminal.
type stuck struct{ io.Reader }

func (stuck) Close() error { return nil }

// TestServeEndsThoughItsInputDoesNot ends the gateway of a client that sends nothing and
// stays connected.
func TestServeEndsThoughItsInputDoesNot(t *testing.T) {
	r := newRig(t)
	in, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.ServeIO(ctx, stuck{in}, &sink{}) }()
	select {
	case err := <-served:
		t.Fatalf("control: it has ended by itself: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := testenv.Receive(t, "its end, whatever its input does", served); err != nil {
		t.Error(err)
	}
}

// TestWritesEnd writes to a pipe that nobody reads.
func TestWritesEnd(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	l := newLines(io.NopCloser(strings.NewReader("")), w, 1000)
	l.bound, l.patience = w.SetWriteDeadline, time.Second
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	message := func(n int) *jsonrpc.Request {
		return &jsonrpc.Request{Method: "x", Params: json.RawMessage(`"` + strings.Repeat("x", n) + `"`)}
	}
	if err := l.Write(t.Context(), message(1)); err != nil {
		t.Errorf("control: %v", err)
	}
	if err := l.Write(soon(), message(200_000)); !errors.Is(err, errUnread) {
		t.Errorf("a part is written: %v", err)
	}
	if err := l.Write(soon(), message(1)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errUnread) {
		t.Errorf("nothing is written: %v", err)
	}
	if err := l.Write(context.Background(), message(1)); !errors.Is(err, errUnread) {
		t.Errorf("without a limit of its own: %v", err)
	}
	l.turn <- struct{}{} // somebody else writes
	if err := l.Write(soon(), message(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("behind somebody else: %v", err)
	}
}

// FuzzMessage shows that what is read as a message is what the SDK reads.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":[1]}}`, `{"jsonrpc":"2.0","id":"x","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","method":""}`, `{"jsonrpc":"2.0","id":null,"result":1}`, `{"jsonrpc":"2.0","ID":1,"method":"a","METHOD":"b"}`, `{"jsonrpc":"2.0","id":1e400}`, `[]`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b"}`, `{"jsonrpc":"2.0","id":1,"method":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := message(text)
		want, wrong := jsonrpc.DecodeMessage(text)
		if err != nil || wrong != nil {
			return
		}
		switch m := m.(type) {
		case *jsonrpc.Request:
			w, ok := want.(*jsonrpc.Request)
			if !ok || w.ID != m.ID || w.Method != m.Method || !same(w.Params, m.Params) {
				t.Errorf("%q is %+v, and %+v to the SDK", text, m, want)
			}
		case *jsonrpc.Response:
			w, ok := want.(*jsonrpc.Response)
			if !ok || w.ID != m.ID || !same(w.Result, m.Result) || (w.Error == nil) != (m.Error == nil) {
				t.Errorf("%q is %+v, and %+v to the SDK", text, m, want)
			}
		}
	})
}

// same says that two are the same JSON; null is the same as nothing.
func same(a, b []byte) bool {
	none := func(t []byte) bool { return len(t) == 0 || string(t) == "null" }
	return none(a) && none(b) || bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

// FuzzToolResult shows that the short way to read a result reads what the SDK
// reads.
func FuzzToolResult(f *testing.F) {
	for _, seed := range []string{`{"content":[{"type":"text","text":"a\ud800"}]}`, `{"content":[{"type":"text","text":"a","TEXT":"b"}],"isError":true}`, `{"content":[{"type":"text","text":1}]}`, `{"content":null,"resultType":"complete"}`, `{"content":[],"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}}}`, `{"content":[{"type":"text"}]}`, `{"isError":null}`, `null`, `{"_meta":{"a":1},"content":[{"text":"x","type":"text"}]}`, `{"_meta":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		short := plainResult(text)
		var long mcp.CallToolResult
		if short == nil || json.Unmarshal(text, &long) != nil {
			return
		}
		if textOf(short) != textOf(&long) || len(short.Content) != len(long.Content) || short.IsError != long.IsError || long.InputRequests != nil {
			t.Errorf("%q is %+v, and %+v to the SDK", text, short, long)
		}
	})
}

// TestAnswersThatNobodyWaitsFor has a server answer calls that were not made: the numbers
// are easily guessed.
func TestAnswersThatNobodyWaitsFor(t *testing.T) {
	text := ""
	for _, id := range []string{"1099511627777", "1099511627777", `"x"`, "7"} {
		text += `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}` + "\n"
	}
	l, _ := linesOf(text, 1000)
	w := &wire{Connection: l, lists: map[jsonrpc.ID]bool{}, sent: map[jsonrpc.ID]*sent{}}
	s, err := w.send(t.Context(), "tools/call", map[string]any{"name": "x"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var rest []any
	for {
		m, err := w.Read(t.Context())
		if err != nil {
			break
		}
		rest = append(rest, m.(*jsonrpc.Response).ID.Raw())
	}
	if a := testenv.Receive(t, "the answer", s.answer); a == nil || a.Error != nil {
		t.Errorf("the call got %v", a)
	}
	if !slices.Equal(rest, []any{int64(1099511627777), "x", int64(7)}) {
		t.Errorf("%v went on to the SDK", rest)
	}
	if _, err := w.send(t.Context(), "tools/call", map[string]any{}, ""); !errors.Is(err, errSilent) {
		t.Errorf("a call after the end: %v", err)
	}
}
