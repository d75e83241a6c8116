// Command model plays a language model for a coding agent, from a script. Each step calls
// a tool of the agent, mostly its shell; a text ends the turn. The command speaks
// Anthropic's messages, OpenAI's responses and chat completions, and Gemini's
// generateContent, with and without streaming. It logs each request as one JSON object a
// line.
//
//	model -script FILE -log FILE -url FILE
//
// It listens on a free port of 127.0.0.1 and writes its address to the file of -url. Each
// request holds the whole conversation, from which the next step follows, so the command
// keeps no state.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// A server answers requests.
type server struct {
	script script
	begun  time.Time
	mu     sync.Mutex
	log    *json.Encoder
}

// A record is one line of the log.
type record struct {
	API    string `json:"api,omitempty"`    // anthropic, responses, openai or gemini
	Step   int    `json:"step"`             // of the script, from 0
	Tool   string `json:"tool,omitempty"`   // called now
	Text   string `json:"text,omitempty"`   // said now
	Result string `json:"result,omitempty"` // of the tool called before
	Stray  string `json:"stray,omitempty"`  // a request for something else
	MS     int64  `json:"ms"`               // since the model began
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "model: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	scriptFile := flag.String("script", "", "`file` with the commands and the text, JSON")
	logFile := flag.String("log", "", "`file` to append to")
	urlFile := flag.String("url", "", "`file` for the address")
	flag.Parse()
	s := &server{begun: time.Now()}
	text, err := os.ReadFile(*scriptFile)
	if err == nil {
		err = json.Unmarshal(text, &s.script)
	}
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	out, err := os.OpenFile(*logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.log = json.NewEncoder(out)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := publish(*urlFile, "http://"+l.Addr().String()); err != nil {
		return err
	}
	return (&http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

// publish writes a file that is whole as soon as it has its name.
func publish(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", serve(s.anthropic))
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]int{"input_tokens": 10}) })
	mux.HandleFunc("POST /v1/responses", serve(s.responses))
	mux.HandleFunc("POST /v1/chat/completions", serve(s.chat))
	mux.HandleFunc("POST /v1beta/models/{call}", serve(s.gemini))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.write(record{Stray: r.Method + " " + r.URL.Path})
		http.NotFound(w, r)
	})
	return mux
}

// serve decodes the request.
func serve[T any](answer func(w http.ResponseWriter, r *http.Request, req T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req T
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 32<<20)).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, r, req)
	}
}

// answer decides about a request and logs it.
func (s *server) answer(api string, step int, result string, tools []tool) turn {
	t := s.script.next(step, tools)
	s.write(record{API: api, Step: step, Tool: t.tool.Name, Text: t.text, Result: result})
	return t
}

func (s *server) write(r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.MS = time.Since(s.begun).Milliseconds()
	if err := s.log.Encode(r); err != nil {
		fmt.Fprintf(os.Stderr, "model: log: %v\n", err)
	}
}
