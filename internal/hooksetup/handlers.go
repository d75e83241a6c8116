package hooksetup

import (
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// A shape is how a kind of settings says what a hook runs.
type shape struct {
	line    string // the name of the command line
	timeout string // that of the time-out, and how many of its units are a second
	second  int
	grouped bool // handlers stand in groups, below "hooks", each with what it is for
	typed   bool // handlers say that they are commands
	// beside is what else a handler says; version what a file of ours says first.
	beside  map[string]any
	version int
	pin     *pin
}

// A pin is a setting that keeps hooks on, whatever settings of less weight say.
type pin struct {
	path []string
	on   bool
}

// pins by agent, where the settings of the machine outweigh all others.
var pins = map[string]*pin{
	"gemini": {[]string{"hooksConfig", "enabled"}, true},
	"qwen":   {[]string{"disableAllHooks"}, false},
}

// shapes by agents.Hooks.Kind, and by name for agents that took a kind over
// with another unit.
var shapes = map[string]shape{
	"claude":  {line: "command", timeout: "timeout", second: 1, grouped: true, typed: true},
	"codex":   {line: "command", timeout: "timeout", second: 1, grouped: true, typed: true},
	"gemini":  {line: "command", timeout: "timeout", second: 1000, grouped: true, typed: true},
	"qwen":    {line: "command", timeout: "timeout", second: 1000, grouped: true, typed: true},
	"copilot": {line: "bash", timeout: "timeoutSec", second: 1, typed: true, version: 1},
	"cursor":  {line: "command", timeout: "timeout", second: 1, version: 1, beside: map[string]any{"failClosed": true}},
	"crush":   {line: "command", timeout: "timeout", second: 1},
}

// An event of an agent that a hook of ours is called for.
type event struct {
	name string
	line string // what is run
}

// handler is what stands for one event in the settings.
func (s shape) handler(e event, seconds int) any {
	h := map[string]any{s.line: e.line}
	if s.typed {
		h["type"] = "command"
	}
	if seconds > 0 {
		h[s.timeout] = seconds * s.second
	}
	for k, v := range s.beside {
		h[k] = v
	}
	if s.grouped {
		return map[string]any{"hooks": []any{h}}
	}
	return h
}

// depthOf is how deep the elements of hooks.EVENT stand.
const depthOf = 3

// put returns a settings file with one handler of ours for each event and none
// for another. Where that is so already, it is what it was, byte for byte.
func (s shape) put(old []byte, agent string, events []event, seconds int) ([]byte, error) {
	d, err := readDocument(old)
	if err != nil {
		return nil, err
	}
	if s.version > 0 && len(old) == 0 {
		d.addMember(&d.root, 1, "version", hujson.Int(int64(s.version)))
	}
	changed := len(old) == 0
	s.prune(d, agent, func(name string) bool { return !named(events, name) }, nil, &changed)
	for _, e := range events {
		list, err := d.array("hooks", e.name)
		if err != nil {
			return nil, err
		}
		want := s.handler(e, seconds)
		if n, exact := s.count(list, agent, want); n == 1 && exact {
			continue
		}
		s.strip(list, agent)
		if err := d.addElement(list, depthOf, want); err != nil {
			return nil, err
		}
		changed = true
	}
	if s.pin != nil {
		pinned, err := d.pinned(*s.pin)
		if err != nil {
			return nil, err
		}
		changed = changed || pinned
	}
	if !changed {
		return old, nil
	}
	text, err := s.verified(old, d, agent)
	if err != nil {
		return nil, err
	}
	return text, s.stands(text, agent, events, seconds)
}

// stands is an error where a text does not have what put is to put in.
func (s shape) stands(text []byte, agent string, events []event, seconds int) error {
	d, err := readDocument(text)
	if err != nil {
		return err
	}
	for _, e := range events {
		list, err := d.array("hooks", e.name)
		if err != nil {
			return err
		}
		if n, exact := s.count(list, agent, s.handler(e, seconds)); n != 1 || !exact {
			return fmt.Errorf("BUG(bawn): %d hooks for %q after the edit", n, e.name)
		}
	}
	return nil
}

func named(events []event, name string) bool {
	return slices.ContainsFunc(events, func(e event) bool { return e.name == name })
}

// take returns a settings file without handlers of ours. Containers that are
// empty then go too, unless they stood in before. nil is a file that nothing is
// left of but what put begins one with.
func (s shape) take(old, before []byte, agent string) ([]byte, error) {
	d, err := readDocument(old)
	if err != nil {
		return nil, err
	}
	var was *document
	if before != nil {
		if was, err = readDocument(before); err != nil {
			was = nil // it says nothing then
		}
	}
	changed := false
	s.prune(d, agent, func(string) bool { return true }, was, &changed)
	if !changed {
		return old, nil
	}
	if s.pin != nil && !was.has(s.pin.path...) {
		d.unpin(s.pin.path, was)
	}
	if before == nil && s.bare(d) {
		return nil, nil
	}
	return s.verified(old, d, agent)
}

// bare reports whether nothing is in a document but what put begins one with.
func (s shape) bare(d *document) bool {
	o := d.root.Value.(*hujson.Object)
	rest := slices.DeleteFunc(slices.Clone(o.Members), func(m hujson.ObjectMember) bool { return s.version > 0 && nameOf(m) == "version" })
	return len(rest) == 0 && words(o.AfterExtra) == nil && words(d.root.BeforeExtra) == nil && words(d.root.AfterExtra) == nil
}

// prune takes our handlers out of the events that match.
func (s shape) prune(d *document, agent string, match func(event string) bool, was *document, changed *bool) {
	hooks := member(&d.root, "hooks")
	if hooks == nil {
		return
	}
	o, ok := hooks.Value.(*hujson.Object)
	if !ok {
		return
	}
	for i := len(o.Members) - 1; i >= 0; i-- {
		name, list := nameOf(o.Members[i]), &o.Members[i].Value
		if list.Value.Kind() != '[' || !match(name) || !s.strip(list, agent) {
			continue
		}
		*changed = true
		if empty(list) && !was.has("hooks", name) {
			remove(hooks, i)
		}
	}
	if *changed && empty(hooks) && !was.has("hooks") {
		root := d.root.Value.(*hujson.Object)
		remove(&d.root, slices.IndexFunc(root.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == "hooks" }))
	}
}

// has reports whether something stands at path.
func (d *document) has(path ...string) bool {
	if d == nil {
		return false
	}
	at := &d.root
	for _, name := range path {
		if at = member(at, name); at == nil {
			return false
		}
	}
	return true
}

func empty(v *hujson.Value) bool {
	parts, end := sides(v)
	return len(parts) == 0 && end != nil && words(*end) == nil
}

// strip takes our handlers out of one list, with groups that had no other.
func (s shape) strip(list *hujson.Value, agent string) (found bool) {
	a := list.Value.(*hujson.Array)
	for i := len(a.Elements) - 1; i >= 0; i-- {
		element := &a.Elements[i]
		if !s.grouped {
			if s.ours(element, agent) {
				remove(list, i)
				found = true
			}
			continue
		}
		inner := member(element, "hooks")
		if inner == nil || inner.Value.Kind() != '[' {
			continue
		}
		handlers := inner.Value.(*hujson.Array)
		any := false
		for j := len(handlers.Elements) - 1; j >= 0; j-- {
			if s.ours(&handlers.Elements[j], agent) {
				remove(inner, j)
				any, found = true, true
			}
		}
		if any && empty(inner) {
			remove(list, i)
		}
	}
	return found
}

// ours reports whether a handler runs a line that command has made.
func (s shape) ours(handler *hujson.Value, agent string) bool {
	line, ok := literal(member(handler, s.line))
	return ok && isCommand(line, agent)
}

func literal(v *hujson.Value) (string, bool) {
	if v == nil || v.Value.Kind() != '"' {
		return "", false
	}
	return v.Value.(hujson.Literal).String(), true
}

// count returns how many handlers of a list are ours, and whether the element of
// the last one is exactly what is wanted.
func (s shape) count(list *hujson.Value, agent string, want any) (n int, exact bool) {
	for i := range list.Value.(*hujson.Array).Elements {
		element := &list.Value.(*hujson.Array).Elements[i]
		for _, h := range s.handlers(element) {
			if s.ours(h, agent) {
				n++
				exact = means(element, want)
			}
		}
	}
	return n, exact
}

// handlers are those of one element.
func (s shape) handlers(element *hujson.Value) []*hujson.Value {
	if !s.grouped {
		return []*hujson.Value{element}
	}
	inner := member(element, "hooks")
	if inner == nil || inner.Value.Kind() != '[' {
		return nil
	}
	var all []*hujson.Value
	for i := range inner.Value.(*hujson.Array).Elements {
		all = append(all, &inner.Value.(*hujson.Array).Elements[i])
	}
	return all
}

// means reports whether a part of a document says the same as a value.
func means(v *hujson.Value, want any) bool {
	d := document{root: v.Clone()}
	got, err := d.meaning()
	if err != nil {
		return false
	}
	other, err := meaningOf(want)
	return err == nil && same(got, other)
}

// verified returns the text of an edited document, if it can be read again and
// says of everything that is not ours what it said before.
func (s shape) verified(old []byte, d *document, agent string) ([]byte, error) {
	text := d.bytes()
	is, err := s.others(text, agent)
	if err != nil {
		return nil, err
	}
	if len(old) == 0 {
		return text, nil
	}
	was, err := s.others(old, agent)
	if err != nil || !same(was, is) {
		return nil, fmt.Errorf("the edit would have changed more than bawn's own (%v); nothing was written", err)
	}
	return text, nil
}

// others is what a document says apart from handlers of ours, and from what
// holds nothing without them.
func (s shape) others(text []byte, agent string) (any, error) {
	d, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	v, err := d.meaning()
	if err != nil {
		return nil, err
	}
	all := v.(map[string]any)
	if s.pin != nil {
		unpin(all, s.pin.path)
	}
	hooks, ok := all["hooks"].(map[string]any)
	if !ok {
		return all, nil
	}
	for name, list := range hooks {
		if list, ok := list.([]any); ok {
			if hooks[name] = s.without(list, agent); len(hooks[name].([]any)) == 0 {
				delete(hooks, name)
			}
		}
	}
	if len(hooks) == 0 {
		delete(all, "hooks")
	}
	return all, nil
}

// without returns a list of handlers, or of groups of them, without ours.
func (s shape) without(list []any, agent string) []any {
	return slices.DeleteFunc(list, func(e any) bool {
		m, _ := e.(map[string]any)
		if !s.grouped {
			line, _ := m[s.line].(string)
			return isCommand(line, agent)
		}
		inner, ok := m["hooks"].([]any)
		if !ok || len(inner) == 0 {
			return false
		}
		flat := s
		flat.grouped = false
		m["hooks"] = flat.without(inner, agent)
		return len(m["hooks"].([]any)) == 0
	})
}
