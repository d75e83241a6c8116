package attach

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// A Client is a viewer's side. Its methods may be called by several goroutines,
// but Next by one only.
type Client struct {
	conn *net.UnixConn
	r    *bufio.Reader
	buf  []byte

	mu sync.Mutex // held while a frame is written
}

// An Event is one message of a host.
type Event struct {
	// Output is the guest's output. It is valid until the next call of Next.
	Output []byte
	// Anew says that Output is the whole screen: empty the terminal before.
	Anew bool
	// Status is the session's, where that has changed.
	Status *Status
	// Notice is a line for the human.
	Notice string
	// Exit is how the session ended. Nothing comes after it.
	Exit *Exit
}

// ErrHostGone is what Next returns when the session's host is gone and has not
// said how it ended: it was killed, and the guest with it.
var ErrHostGone = errors.New("the session's host is gone, and the guest with it")

// Dial makes a viewer of the session with exactly that ID in the registry below
// dir. A session that has no host to attach to gives an error that is
// fs.ErrNotExist; of one that has ended it is syscall.ECONNREFUSED.
func Dial(dir, id string, readOnly bool) (*Client, error) {
	if !validID(id) {
		return nil, &NotFoundError{ID: id}
	}
	place := filepath.Join(dir, sessionsName, id)
	conn, err := connect(place)
	if err != nil {
		return nil, fmt.Errorf("attach to session %q: %w", id, err)
	}
	key, err := atomicfile.Read(filepath.Join(place, keyName), maxKey)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach to session %q: read its key: %w", id, err), conn.Close())
	}
	return greet(conn, hello{ReadOnly: readOnly, Key: string(key)})
}

// NewClient makes a viewer of an end of Pair, which is used up.
func NewClient(end *os.File, readOnly bool) (*Client, error) {
	conn, err := streamConn(end)
	if err != nil {
		return nil, err
	}
	return greet(conn, hello{ReadOnly: readOnly})
}

func greet(conn *net.UnixConn, h hello) (*Client, error) {
	c := &Client{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	err := c.send(appendJSON(nil, helloFrame, h))
	if err != nil && !errors.Is(err, syscall.EPIPE) { // of which Next says why
		return nil, errors.Join(fmt.Errorf("attach to the session: %w", err), conn.Close())
	}
	return c, nil
}

// A RefusedError is why the host does not let somebody view the session, or not
// any longer.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "refused by the session's host: " + e.Why }

// Next waits for the next event. Its error is a *RefusedError where the host
// does not want this viewer, and ErrHostGone where it is gone, or after an Exit.
func (c *Client) Next() (Event, error) {
	for {
		k, content, err := readFrame(c.r, &c.buf)
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			return Event{}, ErrHostGone
		}
		if err != nil {
			return Event{}, err
		}
		if k == refuseFrame {
			return Event{}, &RefusedError{string(content)}
		}
		if e, ok := event(k, content); ok {
			return e, nil
		}
	}
}

// event reads a frame of the host's; false where it is of a newer one.
func event(k kind, content []byte) (Event, bool) {
	switch k {
	case outputFrame, screenFrame:
		return Event{Output: content, Anew: k == screenFrame}, true
	case noticeFrame:
		return Event{Notice: string(content)}, true
	case stateFrame:
		s := &Status{}
		return Event{Status: s}, json.Unmarshal(content, s) == nil
	case exitFrame:
		e := &Exit{}
		return Event{Exit: e}, json.Unmarshal(content, e) == nil
	}
	return Event{}, false
}

// Input types. It waits while the guest does not read.
func (c *Client) Input(keys []byte) error {
	for len(keys) > 0 {
		n := min(len(keys), 64<<10)
		if err := c.send(appendFrame(nil, inputFrame, keys[:n])); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// Resize says how large the viewer's window is.
func (c *Client) Resize(s Size) error { return c.send(appendJSON(nil, resizeFrame, s)) }

// Signal sends one of TERM, INT, HUP, QUIT, USR1, USR2, TSTP, CONT and KILL to
// the session, as Entry.Signal does.
func (c *Client) Signal(name string) error {
	return c.send(appendFrame(nil, signalFrame, []byte(name)))
}

// Refresh asks for the whole screen.
func (c *Client) Refresh() error { return c.send(appendFrame(nil, screenFrame, nil)) }

// SetReadDeadline is net.Conn's, for Next.
func (c *Client) SetReadDeadline(t time.Time) error { return c.conn.SetReadDeadline(t) }

// Close ends the view; the session goes on.
func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) send(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Write(frame)
	return err
}
