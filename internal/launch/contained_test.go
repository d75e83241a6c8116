package launch

import (
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
)

// inPart is a plan that enforces some attributes in part.
type inPart struct {
	sandbox.Plan
	attributes []string
}

func (p inPart) Partly() (out []bawn.Capability) {
	for _, a := range p.attributes {
		out = append(out, bawn.Capability{Attribute: a, Strength: bawn.Partly})
	}
	return out
}

// TestContainedIsWhatIsEnforced: what a provider enforces in part, or a flag opens, does
// not count as contained.
func TestContainedIsWhatIsEnforced(t *testing.T) {
	all := bawn.ContainedFully
	for name, tt := range map[string]struct {
		session runner.Session
		want    bawn.Contained
	}{
		"a full sandbox":        {runner.Session{Plan: inPart{}}, all},
		"limits in part":        {runner.Session{Plan: inPart{attributes: []string{sandbox.LimitMemory}}}, all},
		"no sandbox":            {runner.Session{Plan: inPart{}, Uncontained: unsandboxedNamed}, bawn.Contained{}},
		"protection in part":    {runner.Session{Plan: inPart{attributes: []string{sandbox.FSProtect}}}, bawn.Contained{Processes: true, Network: true}},
		"processes in part":     {runner.Session{Plan: inPart{attributes: []string{sandbox.Processes}}}, bawn.Contained{Files: true, Network: true}},
		"a network in part":     {runner.Session{Plan: inPart{attributes: []string{sandbox.NetAllow}}}, bawn.Contained{Files: true, Processes: true}},
		"the whole network":     {runner.Session{Plan: inPart{}, Session: bawn.Session{Isolation: bawn.Isolation{Network: bawn.NetworkFull}}}, bawn.Contained{Files: true, Processes: true}},
		"shared caches":         {runner.Session{Plan: inPart{}, Session: bawn.Session{Isolation: bawn.Isolation{Caches: bawn.CacheShared}}}, bawn.Contained{Processes: true, Network: true}},
		"the commands' network": {runner.Session{Plan: inPart{}, Split: &runner.Split{Plan: inPart{}, Isolation: bawn.Isolation{Network: bawn.NetworkFull}}}, bawn.Contained{Files: true, Processes: true}},
	} {
		if got := contained(nil, &tt.session); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestCommandsAskWhereTheSandboxHoldsInPart: the connection alone asks only where
// nothing but connections leads out. The first row is the control.
func TestCommandsAskWhereTheSandboxHoldsInPart(t *testing.T) {
	for name, tt := range map[string]struct {
		contained bawn.Contained
		asks      bool
		want      bool
	}{
		"a full sandbox":      {bawn.ContainedFully, true, true},
		"nobody is asked":     {bawn.ContainedFully, false, false},
		"sockets of the host": {bawn.Contained{Files: true, Network: true}, true, false},
		"files of the host":   {bawn.Contained{Processes: true, Network: true}, true, false},
		"no sandbox":          {bawn.Contained{}, true, false},
	} {
		iso := bawn.Isolation{Network: bawn.NetworkAllowlist, Egress: bawn.Egress{HTTP: []string{"*.npmjs.org:443 GET,HEAD /**", "pypi.org:443 GET,HEAD /**"}, Git: []string{"git.test fetch"}, Ask: time.Minute}}
		s := &runner.Session{Contained: tt.contained, Session: bawn.Session{Isolation: iso}}
		p := &planner{Planned: &Planned{setup: &setup{Launch: &Launch{}, config: configured(t, "", config.Flags{})}, Session: s}, relays: &relays{asks: tt.asks}}
		if got := p.connectionAsks(); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// A provider that has a session socket and enforces some attributes in part.
type socketed struct {
	sandbox.Provider
	partly []string
	closed bool
}

func (p socketed) Abilities() sandbox.Abilities { return sandbox.Abilities{Socket: !p.closed} }

func (p socketed) Capabilities() (out []bawn.Capability) {
	for _, a := range sandbox.Attributes() {
		strength := bawn.Enforced
		if slices.Contains(p.partly, a) {
			strength = bawn.Partly
		}
		out = append(out, bawn.Capability{Attribute: a, Strength: strength})
	}
	return out
}

// TestPromptsStayWhereTheSandboxDoesNotHold: an agent asks nothing itself only where the
// sandbox holds all of what it does. Each row takes one thing away from the first.
func TestPromptsStayWhereTheSandboxDoesNotHold(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(u *setup, s *bawn.Session, p *socketed)
		want   bool
	}{
		"a full sandbox":      {func(*setup, *bawn.Session, *socketed) {}, true},
		"protection in part":  {func(_ *setup, _ *bawn.Session, p *socketed) { p.partly = []string{sandbox.FSProtect} }, false},
		"processes in part":   {func(_ *setup, _ *bawn.Session, p *socketed) { p.partly = []string{sandbox.Processes} }, false},
		"the network in part": {func(_ *setup, _ *bawn.Session, p *socketed) { p.partly = []string{sandbox.NetAllow} }, false},
		"no session socket":   {func(_ *setup, _ *bawn.Session, p *socketed) { p.closed = true }, false},
		"the whole network":   {func(_ *setup, s *bawn.Session, _ *socketed) { s.Isolation.Network = bawn.NetworkFull }, false},
		"shared caches":       {func(_ *setup, s *bawn.Session, _ *socketed) { s.Isolation.Caches = bawn.CacheShared }, false},
		"mode safe":           {func(_ *setup, s *bawn.Session, _ *socketed) { s.Mode = bawn.ModeSafe }, false},
		"little autonomy":     {func(_ *setup, s *bawn.Session, _ *socketed) { s.Autonomy = bawn.AutonomyModerate - 1 }, false},
		"a guest's session":   {func(u *setup, _ *bawn.Session, _ *socketed) { u.Parent = &session.Parent{} }, false},
		"no agent":            {func(u *setup, _ *bawn.Session, _ *socketed) { u.Known = nil }, false},
	} {
		u, p := &setup{Launch: &Launch{}, config: &config.Config{}, Known: &Known{}}, socketed{}
		s := bawn.Session{Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Isolation: bawn.Isolation{Protect: true, Network: bawn.NetworkAllowlist}}
		tt.change(u, &s, &p)
		if got := (&gatherer{&Planned{setup: u, choice: choice{Provider: p}}}).holds(s); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// TestConnectionAsks: a command may leave the question to its connection only where every
// host that the session reaches without one is looked into.
func TestConnectionAsks(t *testing.T) {
	models := []string{"model.test:443"}
	read := []string{"*.npmjs.org:443 GET,HEAD /**", "pypi.org:443 GET,HEAD /**"}
	for name, tt := range map[string]struct {
		change func(*bawn.Isolation)
		want   bool
	}{
		"registries and forges, to be read": {func(*bawn.Isolation) {}, true},
		"a push that is listed": {func(i *bawn.Isolation) {
			i.Egress.Git = append(i.Egress.Git, "git.test push team/* refs/heads/agent/*")
		}, true},
		"no network":                      {func(i *bawn.Isolation) { *i = bawn.Isolation{} }, true},
		"a host that is not looked into":  {func(i *bawn.Isolation) { i.Egress.Hosts = append(i.Egress.Hosts, "git.corp:443") }, false},
		"every method":                    {func(i *bawn.Isolation) { i.Egress.HTTP = append(i.Egress.HTTP, "api.test * /**") }, false},
		"a port of the host":              {func(i *bawn.Isolation) { i.Egress.HostPorts = []string{"3000"} }, false},
		"a host port without a network":   {func(i *bawn.Isolation) { *i = bawn.Isolation{Egress: bawn.Egress{HostPorts: []string{"3000"}}} }, false},
		"the whole network":               {func(i *bawn.Isolation) { i.Network = bawn.NetworkFull }, false},
		"nobody is asked":                 {func(i *bawn.Isolation) { i.Egress.Ask = 0 }, false},
		"a registry by the built-in rule": {func(i *bawn.Isolation) { i.Egress.HTTP = read[:1] }, false},
	} {
		iso := bawn.Isolation{Network: bawn.NetworkAllowlist, Egress: bawn.Egress{Hosts: models, HTTP: slices.Clone(read), Git: []string{"git.test fetch"}, Ask: time.Minute}}
		tt.change(&iso)
		if got := ConnectionAsks(&iso, models); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
