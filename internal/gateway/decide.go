package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// RuleGateway is that of what the gateway refuses by itself.
const RuleGateway = "builtin:mcp-gateway"

// What an argument of a tool may be said to be.
const (
	ArgumentPath    = "path"    // a file or directory, or its file: address
	ArgumentHost    = "host"    // a host, a host:port or a URL
	ArgumentCommand = "command" // a command line
)

// judge has an action decided.
func (g *Gateway) judge(ctx context.Context, a bawn.Action, must string) bawn.Decision {
	if g.opts.Judge == nil {
		return bawn.Denied("nothing decides about calls here", RuleGateway)
	}
	d := g.opts.Judge(ctx, a, must)
	if d.Verdict != bawn.Allow {
		d.Verdict = bawn.Deny
	}
	return d
}

// action is one of a server's, named as rules name it.
func (b *backend) action(resource, args string) bawn.Action {
	return bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: resource, Args: []string{args}, Dir: b.g.opts.Dir, At: b.g.opts.Now()}
}

// decide judges a call, and the files, hosts and commands in its arguments. If a command
// was judged in its canonical form, args gets that form.
func (b *backend) decide(ctx context.Context, t *tool, args map[string]any) (bawn.Decision, string) {
	a := b.action(t.resource(b.Name), shownArgs(args))
	d := b.g.judge(ctx, a, t.must)
	if d.Verdict != bawn.Allow {
		return d, a.Resource
	}
	meant, err := b.meaning(t, args)
	if err != nil {
		return bawn.Denied(err.Error(), RuleGateway), a.Resource
	}
	for _, m := range meant {
		d := b.g.judge(ctx, m.action, "")
		if d.Verdict != bawn.Allow {
			return d, m.action.Resource
		}
		if m.put != nil {
			m.put(executable(d, m.action.Resource))
		}
	}
	return d, a.Resource
}

// executable is the text of a command that may be executed after d.
func executable(d bawn.Decision, asked string) string {
	text := cmp.Or(d.Canonical, asked)
	var head strings.Builder
	for _, kv := range d.Env {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&head, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return head.String() + text
}

// A meant is what one argument means.
type meant struct {
	action bawn.Action
	put    func(text string) // replaces the text in the arguments; nil if it is never replaced
}

// meaning is what the arguments of a call mean.
func (b *backend) meaning(t *tool, args map[string]any) ([]meant, error) {
	var means map[string]string
	if b.Means != nil {
		means = b.Means(t.name)
	}
	names := keys(args)
	if err := distinct(names, means); err != nil {
		return nil, err
	}
	var list []meant
	for _, name := range names {
		kind := means[name]
		if kind == "" {
			continue
		}
		values, err := texts(args, name)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			m, err := b.mean(t, kind, v)
			if err != nil {
				return nil, fmt.Errorf("the argument %q: %w", name, err)
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// distinct refuses names that differ from another, or from a name with a meaning, in case
// only: a case-insensitive reader such as Go's takes them for one, and the last wins.
func distinct(names []string, means map[string]string) error {
	known, seen := map[string]string{}, map[string]string{}
	for name, kind := range means {
		if kind != "" {
			known[fspath.Fold(name)] = name
		}
	}
	for _, name := range names {
		f := fspath.Fold(name)
		if other, is := seen[f]; is {
			return fmt.Errorf("the arguments %q and %q are one for some readers; want the one that the tool documents", line(other), line(name))
		}
		if other, is := known[f]; is && means[name] == "" {
			return fmt.Errorf("the argument %q is %q for some readers; want it written so", line(name), other)
		}
		seen[f] = name
	}
	return nil
}

// keys are the names of arguments, in an order.
func keys(args map[string]any) []string {
	list := make([]string, 0, len(args))
	for name := range args {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// A value is a text among the arguments, and how it is replaced.
type value struct {
	text string
	put  func(string)
}

// texts are the texts that an argument is made of: one, or a list of them.
func texts(args map[string]any, name string) ([]value, error) {
	switch v := args[name].(type) {
	case nil:
		return nil, nil
	case string:
		return []value{{v, func(s string) { args[name] = s }}}, nil
	case []any:
		list := make([]value, len(v))
		for i := range v {
			s, ok := v[i].(string)
			if !ok {
				return nil, fmt.Errorf("the argument %q holds something else than text", name)
			}
			list[i] = value{s, func(s string) { v[i] = s }}
		}
		return list, nil
	}
	return nil, fmt.Errorf("the argument %q is no text; want a text, or a list of texts", name)
}

// mean is what one text means.
func (b *backend) mean(t *tool, kind string, v value) (meant, error) {
	a := bawn.Action{Dir: b.g.opts.Dir, At: b.g.opts.Now()}
	if v.text == "" {
		return meant{}, errors.New("it is empty")
	}
	if strings.ContainsRune(v.text, 0) {
		return meant{}, errors.New("it holds a NUL, where the kernel would cut it")
	}
	switch kind {
	case ArgumentPath:
		name, err := pathOf(v.text)
		a.Kind, a.Operation, a.Resource = bawn.Filesystem, bawn.Write, name
		if t.readOnly {
			a.Operation = bawn.Read
		}
		return meant{action: a}, err
	case ArgumentHost:
		host, err := hostOf(v.text)
		a.Kind, a.Operation, a.Resource = bawn.Network, bawn.Connect, host
		return meant{action: a}, err
	case ArgumentCommand:
		a.Kind, a.Operation, a.Resource = bawn.Command, bawn.Exec, v.text
		return meant{action: a, put: v.put}, nil
	}
	return meant{}, fmt.Errorf("nobody knows what %q means; want path, host or command", kind)
}

// pathOf is the path that a text names.
func pathOf(text string) (string, error) {
	if len(text) < len("file:") || !strings.EqualFold(text[:len("file:")], "file:") {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", fmt.Errorf("%q is no address of a file on this machine", line(text))
	}
	return u.Path, nil
}

// hostOf is the host:port that a text names; the port of HTTPS is meant where
// none is named.
func hostOf(text string) (string, error) {
	port := "443"
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return "", fmt.Errorf("%q is no address of a host", line(text))
		}
		port = cmp.Or(u.Port(), ports[strings.ToLower(u.Scheme)], port)
		text = net.JoinHostPort(u.Hostname(), port)
	}
	host, _, said, err := hostname.Split(text)
	if err != nil {
		return "", fmt.Errorf("%q is no host: %w", line(text), err)
	}
	return net.JoinHostPort(host, cmp.Or(said, port)), nil
}

// ports are those that the schemes of addresses stand for.
var ports = map[string]string{"http": "80", "ws": "80", "ftp": "21", "ssh": "22", "git": "9418"}

// denial says what was refused, by whom and how to ask, in words that a model
// can act on.
func denial(d bawn.Decision, resource string) string {
	return fmt.Sprintf("Denied by Bawn: %s (%s; rule %s). %s", cmp.Or(d.Reason, "no reason was given"), resource, cmp.Or(d.Rule, RuleGateway), remedy(d, resource))
}

// remedy is what can be done about a denial.
func remedy(d bawn.Decision, resource string) string {
	switch d.Rule {
	case guard.RuleApproval:
		return "Nobody answered. Tell your human that \"bawn approvals\" shows the question; then call once more, or do it another way."
	case guard.RuleInvalid, guard.RuleDecider, guard.RuleRecorder:
		return "Bawn itself has a problem that your human has to mend; calling again does not help."
	case RuleGateway:
		return "Call again with arguments that are right, or do it another way."
	}
	return fmt.Sprintf("Do it another way, or ask your human, who can allow %q with a rule of the policy or in the plugin's manifest. The same call is refused again until then.", resource)
}
