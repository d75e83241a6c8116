// Command secretclient is what the conformance suite runs inside a sandbox to use a
// secret, and to look for its value. It is static and needs no other program.
//
//	secretclient env NAME                 a variable
//	secretclient search HALF HALF DIR…    the two joined, in files below and in processes
//	secretclient METHOD URL [NAME VALUE]  a request with a header; NAME "" is for the body
//	secretclient from FILE                the words in a file's lines
//
// Several may follow each other, with "then" between them. Each prints a line of
// JSON, a [probe.Fetched]. "$NAME" in what a request sends is that variable.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

func main() {
	out := json.NewEncoder(os.Stdout)
	args := os.Args[1:]
	if len(args) == 2 && args[0] == "from" {
		text, err := os.ReadFile(args[1])
		if err != nil {
			os.Exit(1)
		}
		args = strings.Split(string(text), "\n")
	}
	var words []string
	for _, w := range append(args, "then") {
		if w != "then" {
			words = append(words, w)
			continue
		}
		if out.Encode(do(words)) != nil {
			os.Exit(1)
		}
		words = nil
	}
}

func do(words []string) probe.Fetched {
	f := probe.Fetched{Asked: strings.Join(words, " ")}
	switch {
	case len(words) == 2 && words[0] == "env":
		f.Text = os.Getenv(words[1])
	case len(words) > 3 && words[0] == "search":
		f.Text = strings.Join(search(words[1]+words[2], words[3:]), " ")
	case len(words) == 2 || len(words) == 4:
		request(words, &f)
	default:
		f.Failed = "want env, search or a request"
	}
	return f
}

// request sends one.
func request(words []string, f *probe.Fetched) {
	var body string
	if len(words) == 4 && words[2] == "" {
		body = os.ExpandEnv(words[3])
	}
	req, err := http.NewRequest(words[0], os.ExpandEnv(words[1]), strings.NewReader(body))
	if err != nil {
		f.Failed = err.Error()
		return
	}
	if len(words) == 4 && words[2] != "" {
		req.Header.Set(words[2], os.ExpandEnv(words[3]))
	}
	client := &http.Client{Timeout: 20 * time.Second}
	answer, err := client.Do(req)
	if err != nil {
		f.Failed = err.Error()
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	f.Status, f.Text = answer.StatusCode, string(text)
	if err != nil {
		f.Failed = err.Error()
	}
}

// search lists where a text is: files, and what processes were started with.
func search(text string, dirs []string) (found []string) {
	look := func(path string) {
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil // what can't be entered can't be read
			}
			if info, err := e.Info(); err == nil && info.Size() < 1<<20 {
				look(path)
			}
			return nil
		})
	}
	for _, kind := range []string{"environ", "cmdline"} {
		processes, _ := filepath.Glob("/proc/[0-9]*/" + kind)
		for _, path := range processes {
			look(path)
		}
	}
	return found
}
