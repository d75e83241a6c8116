package p10_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
)

// A deed is one thing that a guest tries.
type deed struct {
	Name  string
	Words []string
}

// guest does the deeds of a file, and says of each in a line whether it worked.
func guest(file string) int {
	text, err := os.ReadFile(file)
	var deeds []deed
	if err == nil {
		err = json.Unmarshal(text, &deeds)
	}
	if err != nil {
		fmt.Println("no guest:", err)
		return 3
	}
	for _, d := range deeds {
		said, err := do(d.Words)
		if err != nil {
			fmt.Printf("no\t%s\t%.300q\n", d.Name, err.Error())
			continue
		}
		fmt.Printf("yes\t%s\t%.300q\n", d.Name, said)
	}
	return 0
}

func do(words []string) (string, error) {
	verbs := map[string]func([]string) (string, error){
		"api": api, "host": host, "attach": look, "read": read, "put": put, "open": open, "signal": signal, "fetch": fetch, "answer": answer,
		"exec": program, "socket": socket, "see": see, "crowd": crowd,
	}
	verb := verbs[words[0]]
	if verb == nil {
		return "", fmt.Errorf("no such verb: %q", words)
	}
	return verb(words[1:])
}

const short = 3 * time.Second

// post asks a service of the relay.
func post(c *http.Client, url, key, method, body string) (string, error) {
	c.Timeout = short
	r, err := http.NewRequest(http.MethodPost, url+"/bawn.v1.ApprovalService/"+method, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", url)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return sent(c.Do(r))
}

func sent(r *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%d %s", r.StatusCode, text)
	}
	return string(text), err
}

func yesTo(id string) string { return `{"id":"` + id + `","verdict":"VERDICT_ALLOW"}` }

// keyOf returns the key of a socket, or "none" if it can't be read.
func keyOf(socket string) string {
	if key, err := os.ReadFile(socket + ".key"); err == nil {
		return string(key)
	}
	return "none"
}

// api calls the relay at its socket: SOCKET lists the questions, SOCKET ID answers one.
func api(words []string) (string, error) {
	c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.DialTimeout("unix", words[0], short)
	}}}
	if len(words) > 1 {
		return post(c, "http://relay", keyOf(words[0]), "Answer", yesTo(words[1]))
	}
	return post(c, "http://relay", keyOf(words[0]), "List", "{}")
}

// browser reaches the page at a port of loopback, whatever its certificate.
func browser(port string) *http.Client {
	return &http.Client{Timeout: short, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.DialTimeout("tcp", "127.0.0.1:"+port, short)
		},
	}}
}

func fetch(words []string) (string, error) {
	text, err := sent(browser(words[0]).Get("https://localhost:" + words[0] + "/"))
	return fmt.Sprint(len(text), " bytes"), err
}

func answer(words []string) (string, error) {
	return post(browser(words[0]), "https://localhost:"+words[0], "", "Answer", yesTo(words[1]))
}

// host plays a session's host at the relay. SOCKET answers a question that does not exist
// and succeeds if the relay says so; SOCKET ID answers a question.
func host(words []string) (string, error) {
	c, err := net.DialTimeout("unix", words[0], short)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(short)); err != nil {
		return "", err
	}
	say := `{"answer":{"number":1,"id":"none","answer":{}}}`
	if len(words) > 1 {
		yes, err := json.Marshal(bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Once, By: "me", At: time.Now()})
		if err != nil {
			return "", err
		}
		say = fmt.Sprintf(`{"answer":{"number":1,"id":%q,"answer":%s}}`, words[1], yes)
	}
	hello := fmt.Sprintf(`{"key":%q,"secret":"a secret of its own"}`, keyOf(words[0]))
	for _, text := range []string{hello, say} {
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
			return "", err
		}
	}
	for {
		var r struct {
			Refused string
			Failed  *struct{ Code string }
			Record  json.RawMessage
		}
		text, err := frame(c)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		switch {
		case err != nil || r.Refused != "" || r.Failed != nil && len(words) > 1:
			return "", fmt.Errorf("%w: %s %v", errRefused, text, err)
		case r.Failed != nil || r.Record != nil: // it was listened to
			return string(text), nil
		}
	}
}

// frame reads one message of package ipc.
func frame(r io.Reader) ([]byte, error) {
	var n uint32
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return nil, err
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return text, err
}

var errRefused = errors.New("refused")

// look attaches to a session by its path in the registry, with its key if that can be read.
func look(words []string) (string, error) {
	key, err := os.ReadFile(filepath.Join(words[0], "attach.sock.key"))
	if err != nil {
		key = []byte("none")
	}
	was, err := os.Getwd()
	if err == nil {
		err = os.Chdir(words[0]) // the path may be too long for an address
	}
	if err != nil {
		return "", err
	}
	c, err := net.DialTimeout("unix", "attach.sock", short)
	if err := errors.Join(err, os.Chdir(was)); err != nil {
		return "", err
	}
	defer c.Close()
	return greet(c, key)
}

func greet(c net.Conn, key []byte) (string, error) {
	hello := fmt.Sprintf("{\"readOnly\":true,\"key\":%q}", key)
	frame := binary.BigEndian.AppendUint32([]byte("H"), uint32(len(hello)))
	if _, err := c.Write(append(frame, hello...)); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(short)); err != nil {
		return "", err
	}
	got := make([]byte, 200)
	n, err := c.Read(got)
	if err != nil {
		return "", err
	}
	if got[0] != 'T' {
		return "", fmt.Errorf("%w: %q", errRefused, got[:n])
	}
	return string(got[:n]), nil
}

func read(words []string) (string, error) {
	text, err := os.ReadFile(words[0])
	return fmt.Sprint(len(text), " bytes"), err
}

// put opens a file for appending and writes nothing. It creates the file if it does
// not exist.
func put(words []string) (string, error) {
	f, err := os.OpenFile(words[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	return "open", f.Close()
}

// open opens a terminal.
func open(words []string) (string, error) {
	f, err := os.OpenFile(words[0], os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	return "open", f.Close()
}

func signal(words []string) (string, error) {
	pid, err := strconv.Atoi(words[0])
	if err != nil {
		return "", err
	}
	return "signalled", syscall.Kill(pid, 0)
}

// program runs a command without the variables that mark a guest.
func program(words []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*short)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "BAWN_") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// socket says something to the socket of the guest's own session, as a frame or as
// it stands.
func socket(words []string) (string, error) {
	c, err := net.DialTimeout("unix", "/run/bawn/session.sock", short)
	if err != nil {
		return "", err
	}
	defer c.Close()
	say := []byte(words[1])
	if words[0] == "frame" {
		say = append(binary.BigEndian.AppendUint32(nil, uint32(len(say))), say...)
	}
	if _, err := c.Write(say); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(short)); err != nil {
		return "", err
	}
	got := make([]byte, 2000)
	n, err := c.Read(got)
	if err != nil {
		return "", err
	}
	if bytes.Contains(got[:n], []byte(`"Denied"`)) {
		return "", fmt.Errorf("%w: %s", errRefused, got[4:n])
	}
	return string(got[4:n]), nil
}

// see looks for a process by a word of its command line.
func see(words []string) (string, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return "", err
	}
	for _, p := range all {
		line, _ := os.ReadFile(p) // it may have ended
		if slices.Contains(strings.Split(string(line), "\x00"), words[0]) {
			return p, nil
		}
	}
	return "", errors.New("no such process")
}

// crowd lets many shells write at once, and checks the output of each.
func crowd(words []string) (string, error) {
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return "", err
	}
	var wrong sync.Map
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			out, err := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo a%d; sleep 0.05; echo b%d; exit %d", i, i, i)).Output()
			var exit *exec.ExitError
			if string(out) != fmt.Sprintf("a%d\nb%d\n", i, i) || i > 0 && (!errors.As(err, &exit) || exit.ExitCode() != i) {
				wrong.Store(i, fmt.Sprintf("%q %v", out, err))
			}
		})
	}
	all.Wait()
	found := ""
	wrong.Range(func(i, what any) bool { found += fmt.Sprint(i, ": ", what, "; "); return true })
	if found != "" {
		return "", errors.New(found)
	}
	return fmt.Sprint(n, " shells"), nil
}
