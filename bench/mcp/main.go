// Command mcp measures what a call of a tool costs through the gateway, against
// the same server spoken to directly. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/bench/measure"
)

type options struct {
	*measure.Bench
	rounds, warmup int
	serve          bool
}

func main() {
	o := options{Bench: measure.Flags("mcp", "root,user")}
	flag.IntVar(&o.rounds, "rounds", 2000, "how often each variant is called")
	flag.IntVar(&o.warmup, "warmup", 100, "rounds before these that do not count")
	flag.BoolVar(&o.serve, "serve", false, "be the server (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.serve {
		return serve(context.Background())
	}
	if o.rounds < 100 || o.warmup < 0 {
		return errors.New("-rounds, -warmup: want at least 100, and 0")
	}
	return o.OnGround(o.measure)
}

// serve is a server with one tool, which answers with its arguments.
func serve(ctx context.Context) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	return s.Run(ctx, &mcp.StdioTransport{})
}

// The variants of one user.
const (
	direct  = "the server"
	guest   = "the server, as a guest"
	gateway = "through bawn mcp"
	inside  = "through bawn mcp, in a session"
)

var variants = []string{direct, guest, gateway, inside}

func (o *options) measure(g *measure.Ground) error {
	self, whos, err := o.Ready(g, "cmd/bawn", "cmd/bawnd")
	if err != nil {
		return err
	}
	r := measure.NewReport("mcp: what a call of a tool costs through the gateway", os.Stdout)
	if err := measure.Each(whos, func(who measure.Who) error { return o.user(r, who, self, filepath.Join(g.Dir, "bin", "bawn")) }); err != nil {
		return err
	}
	r.Load("after")
	return o.Write(r)
}

// install makes the server a plugin of the user's.
func install(who measure.Who, self, bawn string) error {
	dir := filepath.Join(who.Home, ".config", "bawn", "plugins")
	for _, d := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir} {
		if err := who.Mkdir(d); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	text := fmt.Sprintf("run = { command = [%q, \"-serve\"] }\nfiles = { read = [%q] }\ntools = { allow = [\"echo\"] }\n", self, filepath.Dir(self))
	if err := os.WriteFile(filepath.Join(dir, "echo.toml"), []byte(text), 0o644); err != nil {
		return err
	}
	out, err := who.Command(bawn, "plugin", "pin", "echo", "--yes").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pin the server: %w: %s", err, out)
	}
	return nil
}

// user takes turns between clients of the same server.
func (o *options) user(r *measure.Report, who measure.Who, self, bawn string) error {
	if err := install(who, self, bawn); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bin := filepath.Dir(bawn)
	clients := map[string]*client{}
	for name, argv := range map[string][]string{
		direct: {self, "-serve"}, guest: {bawn, "run", "--quiet", "--ro", filepath.Dir(self), "--", self, "-serve"},
		gateway: {bawn, "mcp"}, inside: {bawn, "run", "--quiet", "--ro", bin, "--", bawn, "mcp"},
	} {
		c, err := connect(ctx, who, argv, name == gateway || name == inside)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer c.Close()
		clients[name] = c
	}
	series := map[string]measure.Series{}
	for n := range o.warmup + o.rounds {
		if err := round(ctx, n, clients, series, n >= o.warmup); err != nil {
			return err
		}
	}
	write(r, who, series)
	return nil
}

// A client speaks to one variant.
type client struct {
	*mcp.ClientSession
	tool string
}

func connect(ctx context.Context, who measure.Who, argv []string, through bool) (*client, error) {
	cmd := who.Command(argv...)
	cmd.Stderr = os.Stderr
	s, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, err
	}
	if through {
		return &client{s, "echo__echo"}, nil
	}
	return &client{s, "echo"}, nil
}

func round(ctx context.Context, n int, clients map[string]*client, series map[string]measure.Series, counts bool) error {
	for _, i := range measure.Order(n, len(variants)) {
		name := variants[i]
		c := clients[name]
		begun := time.Now()
		r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: map[string]any{"path": "/a/b/c", "n": n}})
		took := time.Since(begun)
		if err != nil || r.IsError {
			return fmt.Errorf("%s: %w %+v", name, err, r)
		}
		if counts {
			series[name] = append(series[name], measure.Sample{Wall: took})
		}
	}
	return nil
}

func write(r *measure.Report, who measure.Who, series map[string]measure.Series) {
	r.Line("\nas %s", who.Name)
	var rows [][]string
	for _, name := range variants {
		s := series[name]
		rows = append(rows, []string{
			name, measure.Milliseconds(s.Median()), measure.Milliseconds(p99(s)), fmt.Sprintf("%.3f", (p99(s)-p99(series[direct])).Seconds()*1000),
			measure.Over(s, series[direct]).String(), measure.Ratio(s, series[direct]).String(),
		})
	}
	r.Table([]string{"variant", "p50 ms", "p99 ms", "p99 added ms", "p50 added ms", "× direct"}, rows)
	r.Goal("added by the gateway and the server's sandbox, p50, ms", measure.Over(series[gateway], series[direct]), measure.AtMost(1))
	late := (p99(series[gateway]) - p99(series[direct])).Seconds() * 1000
	r.Goal("added by them, p99, ms", measure.Estimate{Median: late, Low: late, High: late, N: len(series[gateway])}, measure.AtMost(3))
}

// p99 is the wall time that 99 of 100 calls stay below (nearest rank).
func p99(s measure.Series) time.Duration {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b measure.Sample) int { return int(a.Wall - b.Wall) })
	return sorted[(len(sorted)*99+99)/100-1].Wall
}
