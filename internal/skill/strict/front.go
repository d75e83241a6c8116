package strict

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Bounds of front matter.
const (
	maxFront       = 16 << 10 // bytes
	maxKeys        = 64       // of one mapping, and items of one list
	maxDeep        = 4        // mappings and lists within one another
	maxValue       = 4 << 10  // bytes of one value
	maxName        = 64
	maxDescription = 1024 // of a skill, which agents hold ready at all times
)

// Why a key is refused that agents know.
const (
	whyHooks   = "hooks are commands that the agent runs outside of what it was asked; \"bawn init\" writes those there are"
	whyServers = "a text starts no MCP server; add it with \"bawn plugin add\""
	whyUnknown = "no such key; want one of those in docs/skills.md, or a value below \"metadata\""
)

// keys are those of each role: "" for a known one, otherwise what a human
// should be told of it.
var keys = sync.OnceValue(func() map[Role]map[string]string {
	both := "name description license version metadata model effort argument-hint agent disable-model-invocation user-invocable"
	return map[Role]map[string]string{
		RoleSkill: known(both+" compatibility arguments context paths when_to_use tags author category keywords homepage",
			"allowed-tools", "lets the agent use without asking"),
		RoleDefinition: known(both+" color mode temperature top_p top-p steps maxTurns max_turns max-turns prompt disable hidden skills memory background isolation kind display_name timeout_mins target infer subtask initialPrompt disallowedTools disallowed-tools",
			"allowed-tools", "lets the agent use without asking", "tools", "has the tools", "permission", "has permissions of its own", "permissionMode", "has the permission mode", "permission-mode", "has the permission mode"),
	}
})

func known(plain string, told ...string) map[string]string {
	m := map[string]string{}
	for _, k := range strings.Fields(plain) {
		m[k] = ""
	}
	for i := 0; i < len(told); i += 2 {
		m[told[i]] = told[i+1]
	}
	return m
}

// refusedKeys are known, and not wanted.
var refusedKeys = map[string]string{
	"hooks": whyHooks, "mcpServers": whyServers, "mcp-servers": whyServers, "mcp_servers": whyServers, "mcp": whyServers,
}

var (
	skillName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })
	agentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 _.:-]*$`) })
)

// front reads front matter; text is nil if the document has no front matter.
func (p *parser) front(text []byte) {
	switch {
	case text == nil && p.role == RoleSkill:
		p.fault(1, "no front matter; want --- and the keys name and description")
		return
	case text == nil:
		return
	case len(text) > maxFront:
		p.fault(1, "front matter of %d bytes; want at most %d", len(text), maxFront)
		return
	}
	root, err := oneNode(text)
	if err != nil {
		p.fault(1, "the front matter can't be read: %v", err)
		return
	}
	if root == nil || root.Kind != yaml.MappingNode {
		p.fault(1, "the front matter is no mapping; want \"key: value\" on each line")
		return
	}
	if p.sound(root, 0) {
		p.commented(1, "the front matter", comments(root))
		p.mapping(root)
	}
}

// oneNode reads exactly one YAML document.
func oneNode(text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its end")
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("it is empty")
	}
	return doc.Content[0], nil
}

// sound refuses YAML that means something else than it looks like: anchors,
// aliases, tags, merged mappings, keys that occur twice.
func (p *parser) sound(n *yaml.Node, deep int) bool {
	line := n.Line + 1 // the line of --- comes before
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.fault(line, "an anchor or an alias; write the value out")
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge" || n.Tag == "!!binary":
		p.fault(line, "a tag (%q); write a plain value", n.Tag)
	case deep > maxDeep:
		p.fault(line, "more than %d levels deep", maxDeep)
	case len(n.Content) > 2*maxKeys:
		p.fault(line, "more than %d entries", maxKeys)
	case len(n.Value) > maxValue:
		p.fault(line, "a value of %d bytes; want at most %d", len(n.Value), maxValue)
	case unseen(n.Value) != "":
		p.fault(line, "a value with its escapes undone: %s", unseen(n.Value))
	case n.Kind == yaml.MappingNode && twice(n) != "":
		p.fault(line, "the key %q is there twice", twice(n))
	default:
		for _, c := range n.Content {
			if !p.sound(c, deep+1) {
				return false
			}
		}
		return true
	}
	return false
}

func twice(n *yaml.Node) string {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i].Value
		if seen[k] {
			return k
		}
		seen[k] = true
	}
	return ""
}

// mapping reads the keys of the role.
func (p *parser) mapping(n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		p.key(n.Content[i], n.Content[i+1])
	}
	d := &p.document
	last := n.Line + 1
	switch {
	case p.role == RoleSkill && d.Name == "":
		p.fault(last, "no name; want name: %s", p.name)
	case p.role == RoleSkill && d.Name != p.name:
		p.fault(last, "the name is %q and the folder's %q; want the same", d.Name, p.name)
	case p.role == RoleSkill && strings.TrimSpace(d.Description) == "":
		p.fault(last, "no description; say what the skill is for and when to use it")
	}
}

func (p *parser) key(k, v *yaml.Node) {
	line := k.Line + 1
	known, limited := keys()[p.role]
	told, ok := known[k.Value]
	switch {
	case k.Kind != yaml.ScalarNode:
		p.fault(line, "a key that is no word")
	case refusedKeys[k.Value] != "":
		p.fault(line, "%q: %s", k.Value, refusedKeys[k.Value])
	case limited && !ok:
		p.fault(line, "%q: %s", k.Value, whyUnknown)
	case k.Value == "name":
		p.named(line, v)
	case k.Value == "description":
		p.described(line, v)
	case strings.HasPrefix(k.Value, "permission") && strings.Contains(strings.ToLower(flat(v)), "bypass"):
		p.fault(line, "%q: a text does not end the agent's own questions", k.Value)
	case told != "":
		p.notice("%s: %s", told, flat(v))
	}
}

func (p *parser) named(line int, v *yaml.Node) {
	form, want := agentName(), "letters, digits, blanks and -_.:"
	if p.role == RoleSkill {
		form, want = skillName(), "a-z, 0-9 and single hyphens"
	}
	if v.Kind != yaml.ScalarNode || len(v.Value) > maxName || !form.MatchString(v.Value) {
		p.fault(line, "the name %.80q is invalid; want at most %d of %s", v.Value, maxName, want)
		return
	}
	p.document.Name = v.Value
}

func (p *parser) described(line int, v *yaml.Node) {
	switch {
	case v.Kind != yaml.ScalarNode:
		p.fault(line, "the description is no text")
	case p.role == RoleSkill && len(v.Value) > maxDescription:
		p.fault(line, "a description of %d bytes; want at most %d", len(v.Value), maxDescription)
	case p.role == RoleSkill && strings.ContainsAny(v.Value, "<>"):
		p.fault(line, "the description has < or >, which agents read as markup; write it without")
	default:
		p.document.Description = v.Value
	}
}

// flat is a value on one line.
func flat(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	words := make([]string, len(n.Content))
	for i, c := range n.Content {
		words[i] = flat(c)
	}
	return strings.Join(words, ", ")
}
