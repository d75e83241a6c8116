package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/gateway"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
)

// garbage is how much of it there may be, in percent of what is alive, some 4 MB,
// before it is collected. Each call leaves 200 KB, most of it by the SDK: at the
// usual 100 a fifth of a call's processor time went into collecting it.
const garbage = 400

// serveGateway serves tool servers to one client over pipes, or to clients over
// HTTP, until they are gone or ctx ends.
func serveGateway(ctx context.Context, set launch.GatewaySetting) error {
	debug.SetGCPercent(garbage)
	o := gateway.Options{
		Judge: set.Judge, Dir: set.Dir, Version: launch.Version,
		Report: func(e gateway.Event) { set.Report(e.Server, e.What, e.Why) },
	}
	for _, s := range set.Servers {
		o.Servers = append(o.Servers, gatewayServer(s, set.Report))
	}
	g, err := gateway.New(o)
	if err != nil {
		return err
	}
	defer g.Close()
	if set.HTTP == "" {
		runtime.GOMAXPROCS(1) // one call after the other: waking a second thread takes longer than what it would do
		in, blocks := polled(set.In, set.Out)
		defer blocks()
		return g.ServeIO(ctx, in, set.Out)
	}
	l, err := gateway.Listen(ctx, set.HTTP)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bawn: note: serving at http://%s%s; end it with Ctrl-C\n", l.Addr(), gateway.Path)
	return g.ServeHTTP(ctx, l, set.Token)
}

// polled returns in as the runtime waits for it without a thread that is stuck
// in read(2), and with it the processor; blocks makes it as it was. A file that
// others may write to, or a terminal, stays as it is.
func polled(in, out *os.File) (polled *os.File, blocks func()) {
	nothing := func() {}
	info, err := in.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return in, nothing
	}
	for _, other := range []*os.File{out, os.Stderr} {
		if is, err := other.Stat(); err != nil || os.SameFile(info, is) {
			return in, nothing
		}
	}
	fd := int(in.Fd())
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 { // then the runtime waits for it already
		return in, nothing
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return in, nothing
	}
	if err := unix.SetNonblock(own, true); err != nil { // of both
		_ = unix.Close(own)
		return in, nothing
	}
	return os.NewFile(uintptr(own), in.Name()), func() { _ = unix.SetNonblock(fd, false) }
}

// fetching is how long a server may take to start that a package manager may have
// to fetch first.
const fetching = 5 * time.Minute

func limits(m *plugin.Manifest) gateway.Limits {
	l := gateway.Limits{Result: m.Limits.ResultBytes, CallsAtOnce: m.Limits.CallsAtOnce}
	if m.Fetched() {
		l.Start = fetching
	}
	return l
}

// gatewayServer is a plugin as the gateway has it.
func gatewayServer(s launch.GatewayServer, report func(server, what, why string)) gateway.Server {
	m := s.Manifest
	return gateway.Server{
		Name: m.Name, About: m.About, Known: known(s, report), Means: meaning(m), Limits: limits(m),
		Start: func(context.Context) (gateway.Process, error) {
			cmd, err := s.Command()
			if err != nil {
				return nil, err
			}
			defer func() {
				for _, f := range cmd.ExtraFiles {
					_ = f.Close() // it was read from
				}
			}()
			return gateway.Launch(cmd)
		},
		Review: func(raw []json.RawMessage) map[string]gateway.Finding { return review(s, raw) },
	}
}

// review compares what a server lists with what the human has agreed to.
func review(s launch.GatewayServer, raw []json.RawMessage) map[string]gateway.Finding {
	found := map[string]gateway.Finding{}
	tools, err := toolsOf(raw)
	pins, err2 := s.Pins()
	for _, t := range tools {
		if err != nil || err2 != nil {
			found[t.Name] = gateway.Finding{Refused: true, Why: "what the human has agreed to can't be compared with it"}
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, c := range plugin.Compare(pins, tools) {
		found[c.Tool] = gateway.Finding{Refused: c.Refused(), Digest: c.Digest, Why: c.Why}
	}
	return found
}

// toolsOf reads tools as a server has listed them. Those that can't be read
// come with their names only, and an error.
func toolsOf(raw []json.RawMessage) (tools []plugin.Tool, err error) {
	for _, text := range raw {
		var t plugin.Tool
		if e := json.Unmarshal(text, &t); e != nil {
			err = e
		}
		tools = append(tools, t)
	}
	return tools, err
}

// known are the tools that the human has agreed to, as they were pinned. Where
// they can't be had the server is started to be asked.
func known(s launch.GatewayServer, report func(server, what, why string)) (raw []json.RawMessage) {
	tools, err := s.Kept()
	for _, t := range tools {
		text, err2 := t.Listed()
		if err = errors.Join(err, err2); err == nil {
			raw = append(raw, text)
		}
	}
	if err != nil {
		report(s.Manifest.Name, "note", "it is started to be asked for its tools: "+err.Error())
		return nil
	}
	return raw
}

// meaning says what arguments mean: by a tool's own name, or by a pattern of
// names, of which the first in their order counts.
func meaning(m *plugin.Manifest) func(tool string) map[string]string {
	keys := slices.Sorted(maps.Keys(m.Arguments))
	return func(tool string) map[string]string {
		means := map[string]string{}
		for _, key := range slices.Backward(keys) {
			pattern, name, ok := plugin.SplitArgument(key)
			if v, _ := (plugin.Tools{Allow: []string{pattern}}).Verdict(tool); ok && v == bawn.Allow {
				means[name] = m.Arguments[key]
			}
		}
		for _, key := range keys {
			if name, own := strings.CutPrefix(key, tool+"."); own {
				means[name] = m.Arguments[key]
			}
		}
		return means
	}
}
