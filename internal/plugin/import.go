package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/bawn-dev/bawn/internal/redact"
)

// A Proposal is a manifest that permits nothing, made from one server in an
// agent's file.
type Proposal struct {
	Manifest Manifest
	Notes    []string // what was left out, and warnings before it runs
}

// Import reads the servers that an agent is configured with: JSON with
// mcpServers, servers or mcp (.mcp.json, settings.json, opencode.json), or TOML
// with mcp_servers (config.toml). The file's permissions are not taken over,
// and neither are values that look like credentials.
func Import(text []byte) ([]Proposal, error) {
	if len(text) > maxToolBytes {
		return nil, fmt.Errorf("the file has %d bytes; want at most %d", len(text), maxToolBytes)
	}
	var file imported
	if json.Valid(text) {
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("the file can't be read: %w", err)
		}
	} else if err := toml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("the file is neither JSON nor TOML: %q", err.Error())
	}
	all := map[string]server{}
	for _, table := range []map[string]server{file.MCPServers, file.Servers, file.MCP, file.Snake} {
		maps.Copy(all, table)
	}
	if len(all) == 0 {
		return nil, errors.New("the file names no servers; want one with \"mcpServers\", \"servers\", \"mcp\" or \"mcp_servers\"")
	}
	if len(all) > maxEntries {
		return nil, fmt.Errorf("the file names %d servers; want at most %d", len(all), maxEntries)
	}
	var out []Proposal
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name].propose(name))
	}
	return out, nil
}

type imported struct {
	MCPServers map[string]server `json:"mcpServers" toml:"mcpServers"`
	Servers    map[string]server `json:"servers" toml:"servers"`
	MCP        map[string]server `json:"mcp" toml:"mcp"`
	Snake      map[string]server `json:"mcp_servers" toml:"mcp_servers"`
}

// A server is how agents write one: the command as a list, or as a text and
// its arguments.
type server struct {
	Command     any               `json:"command" toml:"command"`
	Args        []string          `json:"args" toml:"args"`
	Env         map[string]string `json:"env" toml:"env"`
	Environment map[string]string `json:"environment" toml:"environment"`
	URL         string            `json:"url" toml:"url"`
}

func (s server) propose(name string) Proposal {
	p := Proposal{Manifest: Manifest{Name: pluginName(name), Kind: Server}}
	argv := s.argv()
	if len(argv) == 0 {
		p.note("it has no command: a server at an address is not started by Bawn")
		return p
	}
	p.run(argv)
	for _, env := range []map[string]string{s.Env, s.Environment} {
		for _, k := range slices.Sorted(maps.Keys(env)) {
			p.env(k, env[k])
		}
	}
	p.note("it sees no files and no hosts: add what it needs to files and hosts")
	return p
}

func (s server) argv() []string {
	switch c := s.Command.(type) {
	case string:
		if c != "" {
			return append([]string{c}, s.Args...)
		}
	case []any:
		var argv []string
		for _, a := range c {
			text, ok := a.(string)
			if !ok {
				return nil
			}
			argv = append(argv, text)
		}
		return append(argv, s.Args...)
	}
	return nil
}

// run turns the usual forms of npx and uvx into packages.
func (p *Proposal) run(argv []string) {
	r := &p.Manifest.Run
	if !slices.Equal(redact.Args(argv), argv) {
		p.note("its arguments look as if they held a credential: put it into the vault (bawn secret) and name it in secrets")
	}
	rest := argv[1:]
	for len(rest) > 0 && (rest[0] == "-y" || rest[0] == "--yes") {
		rest = rest[1:]
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") || argv[0] != "npx" && argv[0] != "uvx" {
		r.Command = argv
		return
	}
	r.Args = rest[1:]
	if argv[0] == "npx" {
		r.NPX = rest[0]
	} else {
		r.UVX = rest[0]
	}
	if form := map[string]bool{"npx": npxForm().MatchString(r.NPX), "uvx": uvxForm().MatchString(r.UVX)}; !form[argv[0]] {
		p.note(fmt.Sprintf("%s names no version: write PACKAGE@VERSION, so that it is the same program tomorrow", redact.Visible(rest[0])))
	}
}

// env takes a variable over unless it looks like a credential, or like a
// reference to one.
func (p *Proposal) env(name, value string) {
	if redact.SecretName(name) || strings.Contains(value, "$") || redact.String(name+"="+value) != name+"="+value {
		p.note(fmt.Sprintf("the variable %s was left out: put its value into the vault (bawn secret) and name it in secrets", redact.Visible(name)))
		return
	}
	if p.Manifest.Env == nil {
		p.Manifest.Env = map[string]string{}
	}
	p.Manifest.Env[name] = value
}

func (p *Proposal) note(text string) { p.Notes = append(p.Notes, text) }

// pluginName makes a plugin's name from an agent's name of a server.
func pluginName(s string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s), "-0123456789")
	if name = strings.TrimRight(name[:min(len(name), 32)], "-"); name == "" {
		return "server"
	}
	return name
}
