package plugin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits of the answers of a server that lists its tools.
const (
	maxLine     = 4 << 20 // bytes of one message
	maxMessages = 4096    // that answer nothing we asked
	maxPages    = 64
	maxTools    = 1024
)

// A Listing is a server's description of itself and its tools.
type Listing struct {
	Name, Version string // as it calls itself
	Instructions  string // its text for the model
	Tools         []Tool
}

// List asks a server of the Model Context Protocol for its tools, over its
// standard output and input. Requests of the server are refused, its
// notifications are skipped. It waits as long as the pipes do: the caller
// closes them in time.
func List(from io.Reader, to io.Writer) (Listing, error) {
	c := &client{lines: bufio.NewReaderSize(from, 64<<10), to: to}
	var hello struct {
		ServerInfo   struct{ Name, Version string } `json:"serverInfo"`
		Instructions string                         `json:"instructions"`
	}
	err := c.call("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]string{"name": "bawn", "version": "1"}}, &hello)
	if err != nil {
		return Listing{}, err
	}
	if err := c.send(message{Method: "notifications/initialized"}); err != nil {
		return Listing{}, err
	}
	l := Listing{Name: hello.ServerInfo.Name, Version: hello.ServerInfo.Version, Instructions: hello.Instructions}
	l.Tools, err = c.tools()
	return l, err
}

// tools reads all pages of the list.
func (c *client) tools() ([]Tool, error) {
	var all []Tool
	params := map[string]any{}
	for range maxPages {
		var page struct {
			Tools      []Tool `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := c.call("tools/list", params, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Tools...); len(all) > maxTools {
			return nil, fmt.Errorf("the server lists more than %d tools", maxTools)
		}
		if page.NextCursor == "" {
			return all, nil
		}
		params["cursor"] = page.NextCursor
	}
	return nil, fmt.Errorf("the list of tools has more than %d pages", maxPages)
}

// A message is one of JSON-RPC 2.0.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type client struct {
	lines *bufio.Reader
	to    io.Writer
	last  int
}

func (c *client) send(m message) error {
	m.Version = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = c.to.Write(append(text, '\n'))
	return err
}

// call sends a request and reads up to its answer.
func (c *client) call(method string, params, result any) error {
	c.last++
	id := fmt.Appendf(nil, "%d", c.last)
	if err := c.send(message{ID: id, Method: method, Params: params}); err != nil {
		return fmt.Errorf("%s: the server does not read: %w", method, err)
	}
	for range maxMessages {
		m, err := c.receive()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", method, err)
		case m.Method != "":
			if err := c.refuse(m); err != nil {
				return err
			}
		case string(m.ID) != string(id):
		case m.Error != nil:
			return fmt.Errorf("%s: the server answers with an error: %+q", method, cut(m.Error.Message))
		default:
			if err := json.Unmarshal(m.Result, result); err != nil {
				return fmt.Errorf("%s: the answer can't be read: %w", method, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: the server sends %d messages and no answer", method, maxMessages)
}

// refuse answers a request of the server; a notification wants no answer.
func (c *client) refuse(m message) error {
	if len(m.ID) == 0 {
		return nil
	}
	return c.send(message{ID: m.ID, Error: &failure{-32601, "method not found"}})
}

// receive reads one message, a line.
func (c *client) receive() (message, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return message{}, fmt.Errorf("the server sends a message of more than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return message{}, fmt.Errorf("the server ended: %w", err)
		}
		break
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("the server sends what is no message: %w", err)
	}
	return m, nil
}
