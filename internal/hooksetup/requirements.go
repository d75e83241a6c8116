package hooksetup

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
)

// A machine's manager writes into requirements.toml what Codex must do. Hooks there
// need no trust, and stay on if the feature is pinned.

const (
	begin = "# bawn init: begin\n"
	end   = "# bawn init: end\n"
)

// requirements is that file: a block of ours at its end, and the pin.
func (s Setup) requirements(p part, a *agents.Agent) ([]part, []string, error) {
	p.put = func(old []byte) ([]byte, error) { return s.require(old, a) }
	p.take = func(old, before []byte) ([]byte, error) {
		if old == nil {
			return nil, nil
		}
		text, err := unrequire(old, before)
		if err == nil && before == nil && len(bytes.TrimSpace(text)) == 0 {
			return nil, nil
		}
		return text, err
	}
	return []part{p}, nil, nil
}

func (s Setup) require(old []byte, a *agents.Agent) ([]byte, error) {
	rest, err := cut(old)
	if err != nil {
		return nil, err
	}
	v, err := tomlMeaning(rest)
	if err != nil {
		return nil, err
	}
	if on, ok := lookup(v, []string{"features", "hooks"}); ok && on != true {
		return nil, errors.New("it says features.hooks = false, so that no hook runs; take that out")
	}
	text, err := setTOML(rest, true, "features", "hooks")
	if err != nil {
		return nil, err
	}
	f, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	want, err := tomlMeaning(text)
	if err != nil {
		return nil, err
	}
	block := s.block(a)
	f.append(begin + block + end)
	if err := merge(want, block); err != nil {
		return nil, err
	}
	return f.verified(want)
}

// block is what stands between the marks.
func (s Setup) block(a *agents.Agent) string {
	var b strings.Builder
	for _, e := range s.events(a) {
		fmt.Fprintf(&b, "[[hooks.%[1]s]]\n[[hooks.%[1]s.hooks]]\ntype = \"command\"\ncommand = %[2]s\ntimeout = %[3]d\n", e.name, tomlValue(e.line), a.Hooks.Seconds)
	}
	return b.String()
}

// merge adds the lists of a block's hooks to those of v.
func merge(v map[string]any, block string) error {
	add, err := tomlMeaning([]byte(block))
	if err != nil {
		return err
	}
	return within(v, []string{"hooks"}, func(hooks map[string]any) {
		for name, list := range add["hooks"].(map[string]any) {
			was, _ := hooks[name].([]any)
			hooks[name] = append(was, list.([]any)...)
		}
	})
}

// cut returns a file without the block of ours.
func cut(old []byte) ([]byte, error) {
	text := string(old)
	head, rest, ok := strings.Cut(text, begin)
	if !ok {
		return old, nil
	}
	_, tail, ok := strings.Cut(rest, end)
	if !ok || strings.Contains(tail, begin) {
		return nil, fmt.Errorf("%q stands there without %q behind it; take the lines between out yourself", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return []byte(strings.TrimSuffix(head, "\n") + tail), nil
}

// unrequire takes block and pin out. The pin stays where it was before.
func unrequire(old, before []byte) ([]byte, error) {
	text, err := cut(old)
	if err != nil || bytes.Equal(text, old) {
		return text, err
	}
	was := map[string]any{}
	if before != nil {
		if v, err := tomlMeaning(before); err == nil {
			was = maps.Clone(v)
		}
	}
	if _, ok := lookup(was, []string{"features", "hooks"}); ok {
		return text, nil
	}
	return unsetTOML(text, "features", "hooks")
}
