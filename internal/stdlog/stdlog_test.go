package stdlog

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

const secret = "token-of-the-session"

// TestMain is a program whose HTTP client gets an answer that it did not ask for.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("TEST_STDLOG"); mode {
	case "":
		os.Exit(m.Run())
	case "control": // as without this package
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	case "taken":
		taken := make(chan string, 1)
		To(func(line string) { taken <- line })
		unsolicited()
		io.WriteString(os.Stdout, <-taken)
		os.Exit(0)
	}
	unsolicited()
	os.Exit(0)
}

// unsolicited returns once net/http has seen an answer on a connection that waits.
func unsolicited() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	idle, seen := make(chan bool), make(chan bool)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		http.ReadRequest(bufio.NewReader(conn))
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-idle
		io.WriteString(conn, secret)
		io.Copy(io.Discard, conn) // the client hangs up when it has printed
		close(seen)
	}()
	res, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + l.Addr().String())
	if err != nil {
		panic(err)
	}
	res.Body.Close()
	close(idle)
	<-seen
}

func TestNothingIsPrinted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]struct{ out, err bool }{"control": {err: true}, "quiet": {}, "taken": {out: true}} {
		var out, errs strings.Builder
		cmd := exec.CommandContext(testenv.Context(t), self)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "TEST_STDLOG="+mode), &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v: %s", mode, err, &errs)
		}
		if strings.Contains(out.String(), secret) != want.out || strings.Contains(errs.String(), secret) != want.err || !want.err && errs.Len() > 0 {
			t.Errorf("%s: printed %q and %q", mode, &out, &errs)
		}
	}
}
