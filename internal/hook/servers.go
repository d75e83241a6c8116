package hook

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Agents call the tools of servers "mcp__SERVER__TOOL", where both names may
// hold "__" too: the same text can be the name of tools of several servers.
const (
	ofServers = "mcp" + between
	between   = "__"
)

// own is the name under which Bawn's gateway stands in an agent's settings. It
// decides every call itself.
const own = "bawn"

// maxReadings is in how many ways the name of a tool may be read.
const maxReadings = 4

// AtGateway is the resource that Bawn's gateway judges, where an agent's tool is
// one of a plugin behind it: "PLUGIN/TOOL" of "mcp__bawn__PLUGIN__TOOL". No name
// of a plugin holds "_", so that there is one way to read it. A tool whose own
// name differs from the gateway's is judged there by its own name only.
func AtGateway(tool string) (resource string, ok bool) {
	rest, is := strings.CutPrefix(tool, ofServers+own+between)
	plugin, name, parts := strings.Cut(rest, between)
	if !is || !parts || name == "" || plugin == own || !isPlugin(plugin) {
		return "", false
	}
	return plugin + "/" + name, true
}

// isPlugin reports whether a name is one that the gateway takes: lower-case
// letters, digits and single "-".
func isPlugin(name string) bool {
	ok := name != "" && name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
	for i := range len(name) {
		c := name[i]
		ok = ok && (c == '-' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9')
	}
	return ok
}

// isOwn reports whether the tool is one of Bawn's own: those of bawn mcp --tools
// are judged where they act, and the gateway's own tool reports its servers'
// state.
func isOwn(rest string) bool {
	name, is := strings.CutPrefix(rest, own+between)
	return is && name != "" && (!strings.Contains(name, between) || name == own+between+"servers")
}

// named refuses a tool whose name points at another server than the agent's
// report.
func (c *Call) named(rest string) error {
	if c.server == "" {
		return nil
	}
	server := asShown(c.server)
	if strings.Contains(server, between) || !strings.HasPrefix(rest, server+between) {
		return fmt.Errorf("the tool %q of the server %q can't be told from one of another server; rename the server so that its name has no %q in it", c.Tool, c.server, between)
	}
	return nil
}

// asShown is a server's name as it stands in those of its tools.
func asShown(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// readings are the tools that a name can be of: one, where the agent says whose
// tool it is. Otherwise, or if the agent writes that name differently, each of
// them must be permitted: a server may have been named so that its tool looks
// like another's.
func (c *Call) readings(a bawn.Action, rest string) error {
	if server := asShown(c.server); strings.Contains(server, between) {
		return c.named(rest)
	} else if tool, is := strings.CutPrefix(rest, server+between); is && server != "" {
		return c.reading(a, server, tool)
	}
	for i := 1; i+len(between) < len(rest); i++ {
		if rest[i:i+len(between)] != between {
			continue
		}
		if err := c.reading(a, rest[:i], rest[i+len(between):]); err != nil {
			return err
		}
	}
	if len(c.Actions) == 0 || len(c.Actions) > maxReadings {
		return fmt.Errorf("the tool %q names no server and tool, or too many", c.Tool)
	}
	return nil
}

// reading adds one of them. A prefix of the gateway's names is the gateway's.
func (c *Call) reading(a bawn.Action, server, tool string) error {
	if server == "" || tool == "" || server == own || strings.HasPrefix(server, own+between) {
		return fmt.Errorf("the tool %q names no server and tool, or one that only Bawn's gateway could have", c.Tool)
	}
	a.Resource = server + "/" + tool
	c.Actions = append(c.Actions, a)
	return nil
}
