// Package acp stands between an editor and an agent that speak the Agent Client
// Protocol (version 1: JSON-RPC 2.0, a message a line, over standard input and
// output; https://agentclientprotocol.com). The agent is a guest. What it asks
// of the editor is decided first: permissions, files, terminals. What is not
// known is refused.
//
// Files and terminals are served in the agent's own sandbox, never by the
// editor: that one follows links, and runs outside of every sandbox.
package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxMessage is the longest message that is read, in bytes. Images in prompts
// are the largest there are.
const MaxMessage = 32 << 20

// Error codes of JSON-RPC 2.0, section 5.1, and of the protocol.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeAbsent   = -32002 // of the protocol: there is no such file
	codeDenied   = -32003 // of the range for implementations
)

// A message is a request, a notification or a response.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Failure        `json:"error,omitempty"`
}

// A Failure is why a request has no result.
type Failure struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

// request reports whether somebody waits for an answer to the message.
func (m *message) request() bool { return m.Method != "" && len(m.ID) > 0 }

// response reports whether the message is an answer.
func (m *message) response() bool { return m.Method == "" && len(m.ID) > 0 }

// valid returns an error for what is no message of JSON-RPC 2.0.
func (m *message) valid() error {
	switch {
	case m.JSONRPC != "2.0":
		return fmt.Errorf("its version is %.20q; want \"2.0\"", m.JSONRPC)
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return errors.New("it is a request and a response at once")
	case m.Method == "" && len(m.ID) == 0:
		return errors.New("it is neither a request nor a response")
	case m.Method == "" && (m.Result == nil) == (m.Error == nil):
		return errors.New("a response has either a result or an error")
	}
	return m.validID()
}

// validID wants a number or a text: what has a shape of its own could be
// written in several ways.
func (m *message) validID() error {
	if len(m.ID) == 0 {
		return nil
	}
	if len(m.ID) > 200 {
		return errors.New("its ID is longer than 200 bytes")
	}
	switch c := m.ID[0]; {
	case c == '"', c == '-', c >= '0' && c <= '9':
		return nil
	case bytes.Equal(m.ID, []byte("null")) && m.response():
		return nil // the answer to what could not be read
	}
	return fmt.Errorf("its ID is %.20q; want a number or a text", m.ID)
}

// A wire carries messages, a line each. Its send may be called by several
// goroutines.
type wire struct {
	in   *bufio.Reader
	mu   sync.Mutex
	out  io.Writer
	name string // of who is at the other end
}

func newWire(name string, in io.Reader, out io.Writer) *wire {
	return &wire{name: name, in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// errMalformed says that a line is no message. The next one may be one.
var errMalformed = errors.New("no message of the protocol")

// receive reads the next message. It returns errMalformed for a line that is not a
// message, after which the next line can be read. Any other error ends the
// connection.
func (w *wire) receive() (*message, error) {
	line, err := w.line()
	if err != nil {
		return nil, err
	}
	return read(line)
}

// read reads one message.
func read(line []byte) (*message, error) {
	m := &message{}
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if err := m.valid(); err != nil {
		return m, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return m, nil
}

// line reads one line that is not empty.
func (w *wire) line() ([]byte, error) {
	var all []byte
	for {
		part, err := w.in.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case len(all) > MaxMessage:
			return nil, fmt.Errorf("a message of the %s is longer than %d MiB", w.name, MaxMessage>>20)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil: // what stands before the end is no whole message
			return nil, err
		}
		if all = bytes.TrimSpace(all); len(all) > 0 {
			return all, nil
		}
	}
}

// send writes one message.
func (w *wire) send(m *message) error {
	m.JSONRPC = "2.0"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil { // it ends with a line feed
		return fmt.Errorf("write a message to the %s: %w", w.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write a message to the %s: %w", w.name, err)
	}
	return nil
}

// answer sends the response to a request.
func (w *wire) answer(id json.RawMessage, result any, failure *Failure) error {
	m := &message{ID: id, Error: failure}
	if failure == nil {
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("write an answer to the %s: %w", w.name, err)
		}
		m.Result = text
	}
	return w.send(m)
}
