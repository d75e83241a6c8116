//go:build linux

package sandboxtest_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	words "github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestBwrap, TestDocker and TestGVisor run beside each other, as they wait for
// engines much of their time. What they count is theirs alone: the fixtures' own
// directory and marks, and containers of an engine that no other test here has.
func TestBwrap(t *testing.T)  { testenv.ByUser(t); contenderNamed(t, "bwrap").conforms(t) }
func TestDocker(t *testing.T) { contenderNamed(t, "docker").conforms(t) }
func TestGVisor(t *testing.T) { contenderNamed(t, "gvisor").conforms(t) }

// oneEngine is held by who has the tests' engine: crashes counts everything in
// it, and kills that.
var oneEngine sync.Mutex

// conforms is the suite for a provider that another engine carries.
func (c contender) conforms(t *testing.T) {
	t.Parallel()
	if c.name == "docker" {
		oneEngine.Lock()
		defer oneEngine.Unlock()
	}
	for _, part := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"attacks", c.attacked}, {"posture", c.posture}, {"resources", c.resources}, {"timeout", c.timeout},
		{"leaves nothing", c.leavesNothing}, {"litter", c.litter}, {"honest", c.honest}, {"crashes", c.crashes}, {"services of the host", c.hostPort},
		{"secrets", c.secrets}, {"egress", c.egress}, {"zones", c.zones},
		{"planted", c.planted}, {"patterns", c.patterns},
	} {
		t.Run(part.name, func(t *testing.T) {
			if part.name != "attacks" {
				testenv.Whole(t) // of native all parts run
			}
			part.do(t)
		})
	}
}

// TestNativeIsHonest, TestNativeCrashes and TestNativeHostPort are these parts
// for the provider that nobody has to name.
func TestNativeIsHonest(t *testing.T) { contenderNamed(t, "native").honest(t) }
func TestNativeCrashes(t *testing.T)  { contenderNamed(t, "native").crashes(t) }
func TestNativeHostPort(t *testing.T) { contenderNamed(t, "native").hostPort(t) }

// TestHost wants of the provider that isolates nothing what it can do: an
// environment without the caller's secrets, and an end in time.
func TestHost(t *testing.T) {
	t.Parallel()
	t.Run("timeout", host.timeout)
	t.Run("litter", host.litter)
	t.Run("environment", func(t *testing.T) {
		host.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
			r := host.run()(t, f, "env")
			if r.Code != 0 || strings.Contains(r.Stdout, f.Token) || !strings.Contains(r.Stdout, "PATH=") {
				t.Errorf("exit code %d, environment %q: %s", r.Code, r.Stdout, r.Stderr)
			}
			if r := sandboxtest.NoSandbox(t, f, "env"); !strings.Contains(r.Stdout, f.Token) {
				t.Error("control: there is no secret in the environment")
			}
		})
	})
}

// networks are those in which a posture is looked at.
func (c contender) networks() []string {
	if c.name == "native" || c.name == "bwrap" {
		return []string{"none", "full"}
	}
	return []string{"none"}
}

// attributeOf is what a family of checks attacks.
var attributeOf = map[string]string{
	"fs-write": sandbox.FSWrite, "fs-narrow": sandbox.FSWrite, "fs-read": sandbox.FSRead, "credentials": sandbox.FSRead,
	"protected-create": sandbox.FSProtect, "protected-rename": sandbox.FSProtect, "protected-link": sandbox.FSProtect,
	"proc": sandbox.Processes, "ipc": sandbox.IPC, "kernel": sandbox.Kernel, "net": sandbox.NetNone,
	"limits": sandbox.LimitFiles,
}

// asksFor are flags by which a session asks for an attribute that not every
// session does.
var asksFor = map[string][]string{
	sandbox.LimitMemory: {"--memory", "64"}, sandbox.LimitPIDs: {"--pids", "64"}, sandbox.LimitCPU: {"--cpus", "1"}, sandbox.LimitTime: {"--timeout", "1m"},
	sandbox.FSPatterns: {"--deny", "*.pem"}, sandbox.DevicesByName: {"--device", "fuse"}, sandbox.NetFull: {"--net", "full"}, sandbox.NetAllow: {"--net", "allowlist"},
}

// honest holds a provider to its own claims. An excused check belongs to an
// attribute that is not called enforced, and a session that asks for an
// unenforced attribute is refused.
func (c contender) honest(t *testing.T) {
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		f.Install(t, relay(t)) // without it nobody has a network by name
		said := c.says(t, f)
		if len(said) < len(sandbox.Attributes()) {
			t.Errorf("it speaks of %d attributes; want all %d", len(said), len(sandbox.Attributes()))
		}
		excused, attacked := c.optionsFor(f).InPart, c.options.Families
		for _, i := range f.List(t) {
			if attacked != nil && !slices.Contains(attacked, i.Family) && said[attributeOf[i.Family]].Strength == words.Enforced {
				t.Errorf("%s is called enforced, but %s is not tried", attributeOf[i.Family], i.Name)
			}
			if why := excused[i.Name] + excused[i.Family+"/"+i.State]; why != "" && said[attributeOf[i.Family]].Strength == words.Enforced {
				t.Errorf("%s is called enforced, but %s is excused: %s", attributeOf[i.Family], i.Name, why)
			}
		}
		for attribute, capability := range said {
			if capability.Strength != words.Enforced && capability.Why == "" {
				t.Errorf("%s is %v without a reason", attribute, capability.Strength)
			}
			if flags := asksFor[attribute]; flags != nil && capability.Strength == words.Unenforced {
				c.refused(t, f, attribute, flags)
			}
		}
	})
}

// says is what doctor says of the provider.
func (c contender) says(t *testing.T, f *sandboxtest.Fixtures) map[string]words.Capability {
	t.Helper()
	r := f.Exec(t, f.Install(t, bawn), "doctor", "--json")
	var report struct {
		Providers []struct {
			Provider     string
			Capabilities []words.Capability
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		t.Fatalf("doctor: %v: %s", err, r.Stderr)
	}
	said := map[string]words.Capability{}
	for _, p := range report.Providers {
		for _, capability := range p.Capabilities {
			if p.Provider == c.name {
				said[capability.Attribute] = capability
			}
		}
	}
	return said
}

// refused wants a session not to start that asks for what is not enforced.
func (c contender) refused(t *testing.T, f *sandboxtest.Fixtures, attribute string, flags []string) {
	t.Helper()
	r := c.run(flags...)(t, f, "sh", "-c", "echo ran")
	if r.Code != 125 || strings.Contains(r.Stdout, "ran") || !strings.Contains(r.Stderr, attribute) {
		t.Errorf("%s is not enforced, yet %q gives exit code %d, %q, %.300s", attribute, flags, r.Code, r.Stdout, r.Stderr)
	}
}

// hostPort reaches a service of the host through the relay, by the sockets in
// the guest's own network namespace; without the flag it is out of reach.
func (c contender) hostPort(t *testing.T) {
	f := c.fixtures(t)
	f.Install(t, relay(t))
	said := c.says(t, f)[sandbox.NetAllow]
	port := strconv.Itoa(f.TCP4)
	ask := func(flags ...string) probe.Attempt {
		r := c.run(append(flags, "--net", "allowlist")...)(t, f, f.Victim, "attempt", "tcp 127.0.0.1:"+port)
		var a probe.Attempt
		if err := json.Unmarshal([]byte(strings.TrimSpace(r.Stdout)), &a); err != nil {
			t.Fatalf("exit code %d, %v in %q: %s", r.Code, err, r.Stdout, r.Stderr)
		}
		return a
	}
	if said.Strength == words.Unenforced {
		t.Logf("%s has no network by name here: %s", c.name, said.Why)
		return // that it is refused then is part of honest
	}
	if a := ask("--host-port", port); !strings.HasPrefix(a.Answer, probe.Answer) {
		t.Errorf("with --host-port: %+v, want the answer %q", a, probe.Answer)
	}
	if a := ask(); a.Answer != "" || !slices.Contains([]string{"ECONNREFUSED", "ECONNRESET"}, a.Errno) {
		t.Errorf("without --host-port: %+v, want a refusal", a)
	}
}
