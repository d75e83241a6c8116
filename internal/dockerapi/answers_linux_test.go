package dockerapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// Answers that are kept as a whole are few at a time, however many are asked for, and
// a guest that does not read one keeps it for a bounded time.
func TestWholeAnswers(t *testing.T) {
	var now, most atomic.Int32
	large := `[{"Id":"` + strings.Repeat("x", 8<<20) + `"}]`
	asked := make(chan struct{})
	b, r := fakes(t, 1, func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		<-asked
		now.Add(-1)
		_, _ = io.WriteString(w, `[]`)
	})
	ask := func(path string) net.Conn {
		c, err := r.dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: docker\r\n\r\n", path)
		return c
	}
	var all []net.Conn
	for range 5 * maxAnswers {
		all = append(all, ask("/containers/json"), ask("/images/json"))
	}
	testenv.Until(t, "some answers", func() bool { return now.Load() == maxAnswers })
	close(asked)
	for _, c := range all {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusOK { // the control
			t.Fatal(err)
		}
	}
	if n := most.Load(); n > maxAnswers {
		t.Errorf("%d answers at a time; want %d at most", n, maxAnswers)
	}
	b.o.Now = func() time.Time { return time.Now().Add(2*time.Second - answerTime) }
	serve := whole(func(_ *Broker, w http.ResponseWriter, _ *http.Request, _ *call) error {
		_, err := io.WriteString(w, large)
		return err
	})
	ended := make(chan error, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ended <- serve(b, w, r, nil) }), ReadHeaderTimeout: time.Minute}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: docker\r\n\r\n")
	if err := testenv.Receive(t, "the end of an answer that nobody reads", ended); err == nil {
		t.Error("8 MiB were written to a guest that reads nothing")
	}
	if len(b.answers) != 0 {
		t.Error("it still counts")
	}
}
