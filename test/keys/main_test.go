//go:build linux

// Package keys_test sets every key of the isolation configuration and every flag of "bawn
// run", and checks the effect from inside a session.
package keys_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

func TestMain(m *testing.M) { os.Exit(testhome.Main("keys", m.Run)) }

// An effect is what a key does.
type effect struct {
	value  string   // in TOML
	flag   []string // that says the same; nil for a key without a flag
	script string   // what a guest does, to whom the key makes a difference
	with   string   // what it prints then; without the key something else
	also   string   // further lines of the configuration, with the key and without
	code   int      // how the session ends with the key
	unless string   // an attribute whose refusal is an effect, too, where it can't be had
	// shown names another test that shows the effect, as FILE: TEXT, where that
	// takes a network, an engine or an agent. What is planned must differ here.
	shown string
	plan  bool // it differs in the plan, too, and not in the provider's options alone
}

// keysOf are the keys of the schema below the table isolation.
func keysOf(t *testing.T) []string {
	t.Helper()
	type table struct {
		Properties map[string]json.RawMessage
	}
	var schema struct {
		Properties struct{ Isolation table }
		Defs       map[string]table `json:"$defs"`
	}
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for name, text := range schema.Properties.Isolation.Properties {
		in := schema.Defs[name]
		if in.Properties == nil && json.Unmarshal(text, &in) != nil {
			t.Fatalf("%s can't be read: %s", name, text)
		}
		for sub := range in.Properties {
			keys = append(keys, name+"."+sub)
		}
		if in.Properties == nil {
			keys = append(keys, name)
		}
	}
	return keys
}

// TestEveryKeyIsHere: a new key, or a new flag, needs an effect.
func TestEveryKeyIsHere(t *testing.T) {
	keys := keysOf(t)
	if len(keys) < 45 {
		t.Errorf("only %d keys are found", len(keys))
	}
	for _, k := range keys {
		if _, ok := effects[k]; !ok {
			t.Errorf("isolation.%s: nothing says what effect it has", k)
		}
	}
	for k := range effects {
		if !slices.Contains(keys, k) {
			t.Errorf("isolation.%s is no key", k)
		}
	}
	var flags []string
	declared := pflag.NewFlagSet("run", pflag.ContinueOnError)
	(&launch.Flags{}).Declare(declared)
	declared.VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	for _, f := range flags {
		_, own := flagEffects[f]
		ofKey := slices.ContainsFunc(list(effects), func(e effect) bool { return e.flag != nil && e.flag[0] == "--"+f })
		if !own && !ofKey && !slices.Contains(others, f) {
			t.Errorf("--%s: nothing says what effect it has", f)
		}
	}
	for _, f := range others {
		if !slices.Contains(flags, f) {
			t.Errorf("--%s is no flag", f)
		}
	}
}

func list(m map[string]effect) []effect {
	var all []effect
	for _, e := range m {
		all = append(all, e)
	}
	return all
}

// TestShown: the other tests that show an effect are there, and speak of it.
func TestShown(t *testing.T) {
	for name, e := range effects {
		file, text, found := strings.Cut(e.shown, ": ")
		if e.shown == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join("../..", file))
		if !found || err != nil || !strings.Contains(string(data), text) {
			t.Errorf("%s: %q does not speak of %q: %v", name, file, text, err)
		}
	}
}

// newAccount makes a home with what the effects are about.
func newAccount(t *testing.T) *testhome.Account {
	t.Helper()
	r := testhome.NewAccount(t, 60*time.Second)
	r.Env = []string{"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=dev", "TERM=dumb", "SHELL=/bin/sh", "SPECIAL=yes"}
	for _, f := range []string{"aside/file", ".aws/credentials", ".mycache/file", ".npm/_cacache/file", "src/project/x.pem", "src/project/kept/file", "src/project/sub/file"} {
		r.Put(t, f, "of the host\n", 0o644)
	}
	r.Put(t, "src/project/.env", "API_TOKEN=4f9c2d7e8b1a6035c7e2f1d0\n", 0o644)
	return r
}

// run is a session of the account.
func run(t *testing.T, r *testhome.Account, lines string, flags []string, script string) testhome.Result {
	t.Helper()
	r.Put(t, ".config/bawn/config.toml", lines, 0o600)
	return r.Run(t, slices.Concat([]string{"bawn", "run", "-q"}, flags, []string{"--", "sh", "-c", script})...)
}

// lines are a configuration in which one key may be set.
func lines(key string, e effect, set bool) string {
	said := map[string]string{"network": `"none"`}
	text := e.also
	if set {
		said[key] = e.value
	}
	var top, below strings.Builder
	for k, v := range said {
		if table, name, ok := strings.Cut(k, "."); ok {
			fmt.Fprintf(&below, "[isolation.%s]\n%s = %s\n", table, name, v)
		} else if !strings.Contains(e.also, k+" = ") || k == key {
			fmt.Fprintf(&top, "%s = %s\n", k, v)
		}
	}
	return "[isolation]\n" + top.String() + text + below.String()
}

// TestEveryKeyHasItsEffect sets each key that a session of provider native shows.
// The control is the same session without it.
func TestEveryKeyHasItsEffect(t *testing.T) {
	for key, e := range effects {
		if e.script == "" {
			continue
		}
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t)
			without := run(t, r, lines(key, e, false), nil, e.script)
			wants(t, "the key", e, run(t, r, lines(key, e, true), nil, e.script), without)
			if e.flag != nil {
				wants(t, e.flag[0], e, run(t, r, lines(key, e, false), e.flag, e.script), without)
			}
		})
	}
	for flag, e := range flagEffects {
		if e.script == "" {
			continue
		}
		t.Run("--"+flag, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t)
			without := run(t, r, lines("", e, false), nil, e.script)
			wants(t, e.flag[0], e, run(t, r, lines("", e, false), e.flag, e.script), without)
		})
	}
}

// wants compares a session with the key with what the key is to do.
func wants(t *testing.T, what string, e effect, with, without testhome.Result) {
	t.Helper()
	if e.unless != "" && with.Code == 125 && strings.Contains(with.Err, e.unless) {
		t.Logf("%s is refused here: %s", e.unless, with.Err)
		return
	}
	got, control := strings.TrimSpace(with.Out), strings.TrimSpace(without.Out)
	if got != e.with || with.Code != e.code && (e.code != killed || with.Code == 0) {
		t.Errorf("%s: exit code %d, %q, want %d, %q: %s", what, with.Code, got, e.code, e.with, with.Err)
	}
	if control == e.with && without.Code == e.code {
		t.Errorf("%s makes no difference: %q: %s", what, control, without.Err)
	}
}

// TestEveryKeyIsPlanned wants a difference in the plan of what other tests show the
// effect of.
func TestEveryKeyIsPlanned(t *testing.T) {
	for key, e := range effects {
		if !e.plan {
			continue
		}
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t)
			plan := func(set bool, flags []string) string {
				r.Put(t, ".config/bawn/config.toml", lines(key, e, set), 0o600)
				got := r.Run(t, slices.Concat([]string{"bawn", "run", "--plan", "--json"}, flags, []string{"--", "true"})...)
				if e.unless != "" && got.Code == 125 && strings.Contains(got.Err, e.unless) {
					return e.unless + " is refused here"
				}
				if got.Code != 0 {
					t.Fatalf("exit code %d: %s", got.Code, got.Err)
				}
				return got.Out
			}
			without := plan(false, nil)
			if plan(true, nil) == without {
				t.Errorf("isolation.%s = %s makes no difference in the plan", key, e.value)
			}
			if e.flag != nil && plan(false, e.flag) == without {
				t.Errorf("%q makes no difference in the plan", e.flag)
			}
		})
	}
}

// hostNetwork names the network namespace of this machine.
func hostNetwork() string {
	name, _ := os.Readlink("/proc/self/ns/net") // "" is the name of none
	return name
}
