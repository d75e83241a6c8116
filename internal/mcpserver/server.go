// Package mcpserver is Bawn's own tools (exec, read, write, edit, glob, grep,
// request_permission) as an MCP server, for agents that run with their own tools
// off. It runs inside a sandbox, which is the boundary. Each call is put to the
// session's Judge first, and a denial is answered with words that a model can act
// on. The caller may be hostile.
package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
)

// Limits of one call; Options may lower the times.
const (
	MaxMessage     = 12 << 20 // bytes of one request
	MaxContent     = 8 << 20  // bytes of a file that is written or edited
	MaxResult      = 64 << 10 // bytes of a result
	MaxLines       = 2000     // lines of a file in one result
	MaxColumns     = 2000     // characters of a line
	MaxFound       = 1000     // names that glob lists
	MaxMatches     = 500      // lines that grep shows
	MaxVisited     = 200_000  // files that glob and grep look at
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 10 * time.Minute
	// DefaultPatience is how long a call waits for a human: most clients give a
	// call up after a minute, and a question that nobody waits for is withdrawn.
	DefaultPatience = 50 * time.Second
)

// A Call is one thing that a tool is about to do.
type Call struct {
	Tool    string        // its name
	Actions []bawn.Action // all of which must be allowed
	MayAsk  bool          // a human may be asked
}

// A Verdict is what became of a Call. The zero Verdict denies.
type Verdict struct {
	Allowed              bool
	Rule, Reason, Remedy string
	Canonical            string   // of a command: the text that was judged, which is what runs
	Env                  []string // NAME=value that it must be given
}

// Options say what the tools work on. The zero Options deny every call.
type Options struct {
	Workspace string // absolute, without links; paths lead nowhere else
	Environ   []string
	// Judge decides; nil, and an error, deny.
	Judge func(context.Context, Call) (Verdict, error)
	// Shell runs a command with "-c"; the program that starts this server finds it.
	// "" runs nothing.
	Shell string
	// Handed says that Shell hands its text to the session socket, which judges
	// and executes it elsewhere, so no second Judge is asked.
	Handed bool
	// Request puts a request to the human, in the words of `bawn request`; nil, and
	// an error, deny.
	Request func(ctx context.Context, want []string, why string) (granted bool, answer string, err error)
	// Timeout is the longest that a command may take; 0 is MaxTimeout.
	Timeout time.Duration
	// Patience is how long a call waits for a decision; 0 is DefaultPatience.
	Patience time.Duration
	Version  string
}

type server struct {
	Options
	root   *os.Root
	served context.Context // ends with the client, and what runs for it does
}

// A leaving tells when nothing more is to be read.
type leaving struct {
	io.ReadCloser
	leave func()
}

// Read implements io.Reader.
func (l *leaving) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if err != nil {
		l.leave()
	}
	return n, err
}

// instructions tell the model what these tools are.
const instructions = `These tools work inside a sandbox. Paths are relative to the workspace, or absolute below it. A refusal says which rule refused and what to do: do not try the same again in other words; ask with request_permission, or go on without it.`

// Serve serves one client over in and out until ctx ends or the client leaves.
// It errs where the workspace can't be opened.
func Serve(ctx context.Context, o Options, in io.ReadCloser, out io.WriteCloser) error {
	s, err := newServer(o)
	if err != nil {
		return err
	}
	defer s.root.Close()
	var leave context.CancelFunc
	s.served, leave = context.WithCancel(ctx)
	defer leave()
	err = s.mcp().Run(ctx, &mcp.IOTransport{Reader: &leaving{in, leave}, Writer: out, MaxLineLength: MaxMessage})
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

func newServer(o Options) (*server, error) {
	if !filepath.IsAbs(o.Workspace) || filepath.Clean(o.Workspace) != o.Workspace {
		return nil, fmt.Errorf("workspace %q is not absolute; want a directory's whole path", o.Workspace)
	}
	root, err := os.OpenRoot(o.Workspace)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	if o.Timeout <= 0 || o.Timeout > MaxTimeout {
		o.Timeout = MaxTimeout
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	return &server{Options: o, root: root, served: context.Background()}, nil
}

// mcp has all tools.
func (s *server) mcp() *mcp.Server {
	m := mcp.NewServer(&mcp.Implementation{Name: "bawn", Title: "Bawn's own tools", Version: cmp.Or(s.Version, "dev")}, &mcp.ServerOptions{Instructions: instructions})
	add(s, m, "exec", "Run a command line in a shell, in the workspace. Its output is cut in the middle where it is long, and what it leaves running in the background is ended with it.", false, s.exec)
	add(s, m, "read", "Read a text file, with line numbers. Use offset and limit for a part of a long one.", true, s.read)
	add(s, m, "write", "Write a file as a whole; directories that are missing are made.", false, s.write)
	add(s, m, "edit", "Replace a text in a file by another. It has to occur exactly once, unless all is set.", false, s.edit)
	add(s, m, "glob", "List files whose names match a pattern: * and ? within a name, ** over directories, {a,b}. The newest come first.", true, s.glob)
	add(s, m, "grep", "Search the contents of files by a regular expression (RE2).", true, s.grep)
	add(s, m, "request_permission", "Ask the human ahead for something that would be refused: a host of the network, or a command.", true, s.request)
	return m
}

// add registers a tool whose schema comes from its input; what has other
// members is refused before it is called.
func add[In any](s *server, m *mcp.Server, name, about string, reads bool, f func(context.Context, In) (string, error)) {
	no := false
	t := &mcp.Tool{Name: name, Description: about, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads, OpenWorldHint: &no}}
	mcp.AddTool(m, t, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.served, cancel)()
		text, err := f(ctx, in)
		if err != nil {
			return nil, nil, errors.New(bounded(printable(err.Error())))
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: bounded(text)}}}, nil, nil
	})
}

// A deniedError is a refusal in words for the model.
type deniedError struct{ Verdict }

func (e *deniedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bawn: denied: %s", cmp.Or(e.Reason, "no reason was given"))
	if e.Rule != "" {
		fmt.Fprintf(&b, " (rule %s)", e.Rule)
	}
	fmt.Fprintf(&b, "\nbawn: %s", cmp.Or(e.Remedy, "do it another way, or ask with request_permission; the same again is refused again"))
	return b.String()
}

// judge returns the verdict where it allows, and an error otherwise.
func (s *server) judge(ctx context.Context, tool string, mayAsk bool, actions ...bawn.Action) (Verdict, error) {
	if s.Judge == nil {
		return Verdict{}, &deniedError{Verdict{Reason: "nobody decides here", Remedy: "start the tools in a session: bawn mcp --tools"}}
	}
	for i := range actions {
		actions[i].Dir = cmp.Or(actions[i].Dir, s.Workspace)
	}
	waiting, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	v, err := s.Judge(waiting, Call{Tool: tool, Actions: actions, MayAsk: mayAsk})
	switch {
	case waiting.Err() != nil && ctx.Err() == nil:
		return Verdict{}, s.unanswered()
	case err != nil:
		return Verdict{}, &deniedError{Verdict{Reason: "it could not be decided: " + err.Error(), Remedy: "tell your human; nothing is done without a decision"}}
	case !v.Allowed:
		return Verdict{}, &deniedError{v}
	}
	return v, nil
}

// unanswered is told where no human has decided in time.
func (s *server) unanswered() error {
	return &deniedError{Verdict{
		Reason: fmt.Sprintf("your human has to decide, and nobody did within %v", s.Patience),
		Remedy: "go on with something else, tell your human what waits for them, and try it again when they are there",
	}}
}

type requestInput struct {
	Host    string   `json:"host,omitempty" jsonschema:"a host of the network, with a port where it is not 443: example.org:22"`
	Command []string `json:"command,omitempty" jsonschema:"a command, word by word"`
	Why     string   `json:"why" jsonschema:"why it is needed, for the human"`
}

// request puts a request to the human.
func (s *server) request(ctx context.Context, in requestInput) (string, error) {
	var want []string
	switch {
	case (in.Host == "") == (len(in.Command) == 0):
		return "", errors.New("give either host or command")
	case strings.HasPrefix(in.Host, "-"):
		return "", fmt.Errorf("host %q is invalid", in.Host)
	case in.Host != "":
		want = []string{"--allow", in.Host}
	default:
		want = append([]string{"--"}, in.Command...)
	}
	if s.Request == nil {
		return "", &deniedError{Verdict{Reason: "nobody can be asked here", Remedy: "go on without it"}}
	}
	waiting, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	granted, answer, err := s.Request(waiting, want, in.Why)
	switch {
	case waiting.Err() != nil && ctx.Err() == nil:
		return "", s.unanswered()
	case err != nil:
		return "", &deniedError{Verdict{Reason: "it could not be asked for: " + err.Error(), Remedy: "go on without it"}}
	case !granted:
		return "", &deniedError{Verdict{Reason: cmp.Or(answer, "the human said no"), Remedy: "do it another way; asking again at once is refused unasked"}}
	}
	return "granted: " + printable(answer) + "\n", nil
}
