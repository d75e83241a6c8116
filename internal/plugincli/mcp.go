package plugincli

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

// NewMCP makes "bawn mcp".
func NewMCP(e *launch.Env) *cobra.Command {
	m := &Serving{Env: e}
	c := &cobra.Command{
		Use:   "mcp [NAME...]",
		Short: "Serve your plugins to an agent as one MCP server",
		Long: `Serve the tools, resources and prompts of your plugins, or of those named, as one
server of the Model Context Protocol over standard input and output.

Each plugin is started when it is needed, as a guest of its own with what its
manifest says. Each call is decided by the policy, where a plugin's manifest
counts as rules of yours, or by you. Inside of a session the gateway runs outside
of it: the guest sees neither the plugins' files nor their secrets.

With --http it serves at the loopback of this machine, to clients that show the
token that is kept in the file mcp-token of Bawn's state directory.`,
		Example: "  bawn mcp\n  bawn mcp filesystem github\n  claude mcp add bawn -- bawn mcp\n  bawn mcp --http 127.0.0.1:8765",
		RunE:    func(_ *cobra.Command, args []string) error { return m.start(args) },

		ValidArgsFunction: completePlugins(e, maxCompleted),
	}
	c.Flags().StringVar(&m.http, "http", "", "`address` of the loopback to serve at, such as 127.0.0.1:8765, instead of standard input and output")
	c.Flags().BoolVar(&m.tools, "tools", false, "serve Bawn's own tools instead: exec, read, write, edit, glob, grep; outside of a session in one of its own, with what follows -- as flags of bawn run")
	return c
}

// Serving is one run of that verb.
type Serving struct {
	Env    *launch.Env
	http   string
	tools  bool
	Parent *session.Parent // of the guest whose calls it serves; nil outside of a session
}

// start serves, or hands this over to who does: from inside of a session to its
// host, from bawn to bawnd.
func (m *Serving) start(names []string) error {
	e := m.Env
	switch {
	case m.tools:
		return m.startTools(names)
	case m.http != "" && !onLoopback(m.http):
		return verb.Usage("for example: bawn mcp --http 127.0.0.1:8765", "--http %q is not on this machine's loopback", m.http)
	case e.Guest() && m.http != "":
		return verb.Usage("leave it out: inside of a session the gateway is reached over standard input and output", "--http is not for guests")
	case e.Guest():
		return verb.Status(shim.Tools(names))
	case launch.Inside(e) != "":
		return &verb.Error{Code: verb.ExitDenied, Err: errors.New("this session has no socket, and its plugins are outside"), Hint: "start the session with a provider that \"bawn doctor --matrix\" shows with a session socket"}
	}
	if e.Gateway == nil {
		return launch.Become(e, "mcp", e.Args[1:])
	}
	return m.Run(names)
}

func (m *Serving) Run(names []string) error {
	e := m.Env
	if e.Gateway == nil { // only a caller that was told to serves it from a spec
		return &verb.Error{Code: verb.ExitInternal, Err: launch.ErrNoBawnd, Hint: doctor.Install}
	}
	s, f, err := m.session()
	if err != nil {
		return err
	}
	set := launch.GatewaySetting{Dir: e.Dir, In: e.Stdin, Out: e.Stdout, HTTP: m.http}
	var rules []bawn.Rule
	if set.Servers, rules, err = m.plugins(names, s.Isolation.Workspace); err != nil {
		return err
	}
	if m.http != "" {
		if set.Token, err = mcpToken(e); err != nil {
			return err
		}
	}
	calls, err := newMCPCalls(f, e, s, rules)
	if err != nil {
		return err
	}
	defer calls.close()
	set.Judge, set.Report = calls.judge, calls.report
	ctx, stop := signal.NotifyContext(e.Life(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := e.Gateway(ctx, set); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	return nil
}

// session is that of the calls: one of its own, or that of the asking guest.
func (m *Serving) session() (*mcpSession, *launch.Launch, error) {
	e, f := m.Env, &launch.Launch{}
	if err := launch.MakeStateDir(e); err != nil {
		return nil, nil, err
	}
	if k := m.Parent; k != nil {
		f.Parent = k
		s := k.Session
		s.ID, s.Parent = launch.NewSessionID(), s.ID
		return &mcpSession{Session: s}, f, nil
	}
	dir, err := settings.RealDir(e.Dir)
	if err != nil {
		return nil, nil, err
	}
	ws := settings.WorkspaceOf(dir, e.Getenv("HOME"))
	cfg, err := settings.LoadConfig(&e.World, ws, config.Flags{})
	if err != nil {
		return nil, nil, err
	}
	s := bawn.Session{ID: launch.NewSessionID(), Agent: "mcp", Mode: cfg.Mode, Autonomy: cfg.Autonomy, Isolation: cfg.Isolation(ws), Provider: launch.NoProvider}
	return &mcpSession{Session: s, config: cfg}, f, nil
}

// An mcpSession is the session that calls count as.
type mcpSession struct {
	bawn.Session
	config *config.Config // nil where a guest asks
}

// plugins are those of the names, or all, and what their manifests say as rules.
func (m *Serving) plugins(names []string, workspace string) (list []launch.GatewayServer, rules []bawn.Rule, err error) {
	dirs, err := pluginDirs(m.Env)
	if err != nil {
		return nil, nil, err
	}
	all, broken := plugin.Load(dirs.Manifests)
	if broken != nil {
		fmt.Fprintf(m.Env.Stderr, "bawn: note: what can't be read in full does not run: %s\n", redact.Visible(broken.Error()))
	}
	for _, man := range all {
		if man.Kind != plugin.Server || len(names) > 0 && !slices.Contains(names, man.Name) {
			continue
		}
		list = append(list, m.plugin(dirs, man, workspace))
		rules = append(rules, manifestRules(man)...)
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(s launch.GatewayServer) bool { return s.Manifest.Name == name }) {
			return nil, nil, verb.Usage("\"bawn plugin list\" shows those that there are", "no plugin %q can be served", name)
		}
	}
	return list, rules, nil
}

func (m *Serving) plugin(dirs plugin.Dirs, man *plugin.Manifest, workspace string) launch.GatewayServer {
	return launch.GatewayServer{
		Manifest: man,
		Pins:     func() (plugin.Pins, error) { return plugin.LoadPins(dirs.Pins, man.Name) },
		Kept: func() ([]plugin.Tool, error) {
			pins, err := plugin.LoadPins(dirs.Pins, man.Name)
			if err != nil {
				return nil, err
			}
			return pins.Kept(dirs.Pins)
		},
		Command: func() (*exec.Cmd, error) {
			cmd, err := m.Env.PluginSession(dirs, man, workspace, launch.PluginOptions{Quiet: true})
			if err != nil {
				return nil, err
			}
			launch.DieWithParent(cmd.SysProcAttr)
			return cmd, nil
		},
	}
}

// manifestAsks is the priority of what no glob of a manifest names: it counts where
// nothing else is said. Its globs count as much as rules of the policy, of which at the
// same priority the strictest wins.
const manifestAsks = -50

// manifestRules are a manifest's tools, as rules.
func manifestRules(m *plugin.Manifest) []bawn.Rule {
	rule := func(id, pattern string, v bawn.Verdict, priority int, why string) bawn.Rule {
		return bawn.Rule{ID: "plugin:" + m.Name + ":" + id, Kind: bawn.Tool, Pattern: m.Name + "/" + pattern, Verdict: v, Priority: priority, Source: bawn.User, Reason: why}
	}
	rules := []bawn.Rule{
		rule("default", "*", bawn.Ask, manifestAsks, "the plugin's manifest does not name it"),
	}
	for _, list := range []struct {
		name    string
		globs   []string
		verdict bawn.Verdict
	}{{"tools.allow", m.Tools.Allow, bawn.Allow}, {"tools.ask", m.Tools.Ask, bawn.Ask}, {"tools.deny", m.Tools.Deny, bawn.Deny}} {
		for _, glob := range list.globs {
			rules = append(rules, rule(list.name+": "+glob, glob, list.verdict, 0, "the plugin's manifest says so"))
		}
	}
	return rules
}

// onLoopback reports whether an address names the loopback and a port.
func onLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().IsLoopback()
}
