// Command hook measures what an agent waits for its hook before each use of a
// tool, against a process that does nothing. Outside of a session the hook
// decides by itself; inside, the session's host decides. See bench/README.md.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bawn-dev/bawn/bench/measure"
)

type options struct {
	*measure.Bench
	rounds, warmup int
	serve          string
}

func main() {
	o := options{Bench: measure.Flags("hook", "root,user")}
	flag.IntVar(&o.rounds, "rounds", 200, "how often each variant runs")
	flag.IntVar(&o.warmup, "warmup", 10, "rounds before these that do not count")
	flag.StringVar(&o.serve, "serve", "", "take samples for another hook, with the programs of this directory (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.serve != "" {
		return serve(o.serve, os.Stdin, os.Stdout)
	}
	if o.rounds < 1 || o.warmup < 0 {
		return errors.New("-rounds, -warmup: want numbers above 0")
	}
	return o.OnGround(o.measure)
}

// The variants of one user.
const (
	bare    = "a process that does nothing"
	goes    = "a Go program that does nothing"
	outside = "bawn hook, outside of a session"
	inside  = "bawn hook, in a session"
)

var variants = []string{bare, goes, outside, inside}

func (o *options) measure(g *measure.Ground) error {
	self, whos, err := o.Ready(g, "cmd/bawn", "cmd/bawnd", "bench/launch/empty")
	if err != nil {
		return err
	}
	r := measure.NewReport("hook: what an agent waits before it uses a tool", os.Stdout)
	if err := measure.Each(whos, func(who measure.Who) error { return o.user(r, who, self, filepath.Join(g.Dir, "bin")) }); err != nil {
		return err
	}
	r.Load("after")
	return o.Write(r)
}

// user takes turns between a process outside and one in a session.
func (o *options) user(r *measure.Report, who measure.Who, self, bin string) error {
	out, err := measure.StartPeer(who.Command(self, "-serve", bin))
	if err != nil {
		return err
	}
	in, err := measure.StartPeer(who.Command(filepath.Join(bin, "bawn"), "run", "--net", "none", "--quiet", "--", self, "-serve", bin))
	if err != nil {
		return errors.Join(err, out.Close())
	}
	series := map[string]measure.Series{}
	for n := range o.warmup + o.rounds {
		for _, i := range measure.Order(n, len(variants)) {
			name, peer, s := variants[i], out, measure.Sample{}
			if name == inside {
				peer = in
			}
			if err = peer.Ask(json.RawMessage(fmt.Sprintf("%q", name)), &s); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", name, err), in.Close(), out.Close())
			}
			if n >= o.warmup {
				series[name] = append(series[name], s)
			}
		}
	}
	write(r, who, series)
	return errors.Join(in.Close(), out.Close())
}

func write(r *measure.Report, who measure.Who, series map[string]measure.Series) {
	r.Compare(who, variants, series)
	r.Goal("added outside of a session, ms", measure.Over(series[outside], series[bare]), measure.AtMost(5))
	r.Goal("added in a session, ms", measure.Over(series[inside], series[bare]), measure.AtMost(5))
}

// message is what Claude Code says before it runs a command.
const message = `{"session_id":"5f2c","transcript_path":"/h/t.jsonl","cwd":%q,"permission_mode":"default","hook_event_name":"PreToolUse",` +
	`"tool_name":"Bash","tool_input":{"command":"git status --short && ls -la src","description":"Show what has changed"},"tool_use_id":"toolu_01"}`

// serve takes samples in its own working directory.
func serve(bin string, in io.Reader, out io.Writer) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	return measure.Serve(in, out, func(variant string) (any, error) {
		switch variant {
		case bare:
			return measure.Run(exec.Command("/bin/true"))
		case goes:
			return measure.Run(exec.Command(filepath.Join(bin, "empty")))
		}
		return hook(exec.Command(filepath.Join(bin, "bawn"), "hook", "claude"), dir)
	})
}

// hook has a message answered, which has to be a yes.
func hook(cmd *exec.Cmd, dir string) (measure.Sample, error) {
	var answer bytes.Buffer
	cmd.Stdin, cmd.Stdout = bytes.NewReader(fmt.Appendf(nil, message, dir)), &answer
	s, err := measure.Run(cmd)
	if err == nil && !bytes.Contains(answer.Bytes(), []byte(`"permissionDecision":"allow"`)) {
		err = fmt.Errorf("the hook has answered %q", answer.Bytes())
	}
	return s, err
}
