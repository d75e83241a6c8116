package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

func TestEgressKeys(t *testing.T) {
	in := world(t)
	put(t, in.User(), `[isolation]
network = "allowlist"
hosts = ["example.org:443,80", "db.corp:5432"]
http = ["api.example.org  GET,GET /v1/**"]
git = ["git.test fetch **"]
host_ports = ["5432:5432"]
ports = ["8080:3000"]
secrets = ["GH_token"]
upstream_proxy = "http://Proxy.corp:3128/"
ask_timeout = "0s"
ssh_agent = true
[isolation.resources]
net_connections = 10
net_out_mb = 20
secret_requests = 30
secret_out_mb = 40
`)
	in.Flags = Flags{Hosts: []string{"x.test"}, HTTP: []string{"y.test GET /"}, Git: []string{"z.test fetch"}, HostPorts: []string{"1:2"}, Ports: []string{"3"}, Secrets: []string{"*"}, AskTimeout: ptr("30s")}
	c := mustLoad(t, in)
	in.Flags = Flags{}
	put(t, in.User(), "")
	builtin := mustLoad(t, in).Isolation(in.Workspace).Egress
	iso := c.Isolation(in.Workspace)
	iso.Egress.Hosts, iso.Egress.Git, iso.Egress.HTTP = minus(iso.Egress.Hosts, builtin.Hosts), minus(iso.Egress.Git, builtin.Git), minus(iso.Egress.HTTP, builtin.HTTP)
	same(t, bawn.Egress{
		Hosts: []string{"example.org", "db.corp:5432", "x.test"}, HTTP: []string{"api.example.org GET /v1/**", "y.test GET /"}, Git: []string{"git.test fetch", "z.test fetch"},
		HostPorts: []string{"5432", "1:2"}, Ports: []string{"8080:3000", "3"}, Secrets: []string{"GH_token", "*"},
		SSHAgent: true, Proxy: "http://proxy.corp:3128", Ask: 30 * time.Second, MaxConns: 10, MaxOutMB: 20, MaxUses: 30, MaxLentMB: 40,
	}, iso.Egress)
	origins := map[string]string{}
	for _, o := range c.Origins() {
		origins[o.Key+"="+o.Show()] = o.Place.String()
	}
	for want, at := range map[string]string{
		`isolation.hosts="db.corp:5432"`: in.User() + ":3:32", `isolation.http="y.test GET /"`: "--http", `isolation.ask_timeout="30s"`: "--ask-timeout",
		`isolation.upstream_proxy="http://proxy.corp:3128"`: in.User() + ":9:1", `isolation.resources.net_out_mb=20`: in.User() + ":14:1",
	} {
		if origins[want] != at {
			t.Errorf("%s comes from %q; want %q", want, origins[want], at)
		}
	}
}

func TestEgressDefaults(t *testing.T) {
	in := world(t)
	e := mustLoad(t, in).Isolation(in.Workspace).Egress
	if e.Ask != AskTimeout || e.SSHAgent || e.Proxy != "" || e.MaxConns != 0 || len(e.Secrets)+len(e.HostPorts)+len(e.Ports) > 0 {
		t.Errorf("%+v", e)
	}
	for _, h := range e.Hosts {
		if got, err := netrule.ParseHost(h); err != nil || got.String() != h {
			t.Errorf("data/default.txt has %q, which is %q, %v", h, got, err)
		}
	}
	for _, h := range e.HTTP {
		if got, err := netrule.ParseHTTP(h); err != nil || got.String() != h {
			t.Errorf("data/default.txt has %q, which is %q, %v", h, got, err)
		}
	}
	for _, g := range e.Git {
		if got, err := netrule.ParseGit(g); err != nil || got.String() != g {
			t.Errorf("data/default.txt has %q, which is %q, %v", g, got, err)
		}
	}
}

// TestDefaultNetwork: what is there for all projects, what is not, and that a
// project may close it.
func TestDefaultNetwork(t *testing.T) {
	in := world(t)
	r := mustCompile(mustLoad(t, in).Isolation(in.Workspace).Egress)
	for host, want := range map[string]bool{
		"any.npmjs.org:443 GET /a": true, "pypi.org:443 HEAD /a": true, "any.golang.org:443 GET /a": true, "any.crates.io:443 GET /a": true, "any.debian.org:80 GET /a": true, "any.debian.org:443 GET /a": true,
		"github.com:443 GET /a/b": true, "gitlab.com:443 GET /a/b": true, "github.com:22 fetch a/b": true, "gitlab.com:443 fetch a/b": true,
		"any.npmjs.org:443 POST /-/npm/v1/security/advisories/bulk": true, "any.npmjs.org:443 PUT /a": false, "any.npmjs.org:443 POST /-/npm/v1/security": false, "any.npmjs.org:443 DELETE /a": false,
		"pypi.org:443 POST /legacy/": false, "any.crates.io:443 PUT /api/v1/crates/new": false, "any.debian.org:80 POST /a": false, "github.com:443 POST /a/b": false,
		"github.com:443 push a/b refs/heads/x": false, "any.npmjs.org:80 GET /a": false, "npmjs.org.evil.test:443 GET /a": false, "evilnpmjs.org:443 GET /a": false, "any.pypi.org:443 GET /a": false,
		"github.com:80 GET /a": false, "api.github.com:443 GET /a": false,
	} {
		at, what, _ := strings.Cut(host, " ")
		name, text, _ := strings.Cut(at, ":")
		if got := reaches(r, name, map[string]uint16{"22": 22, "80": 80, "443": 443}[text], what); got != want {
			t.Errorf("%s: %t; want %t", host, got, want)
		}
	}
	for host, want := range map[string]bool{"api.anthropic.com:443": true, "api.anthropic.com:80": false, "any.npmjs.org:443": false, "pypi.org:443": false, "github.com:443": false} {
		name, text, _ := strings.Cut(host, ":")
		if _, got := r.Hosts.Match(name, map[string]uint16{"80": 80, "443": 443}[text]); got != want {
			t.Errorf("%s is open whole: %t; want %t", host, got, want)
		}
	}
	put(t, in.projectFile(), "isolation.network='none'\n")
	if got := mustLoad(t, in).Isolation(in.Workspace).Network; got != bawn.NetworkNone {
		t.Errorf("a project that wants none has %v", got)
	}
	for profile, want := range map[string]bawn.NetworkMode{"strict": bawn.NetworkNone, "online": bawn.NetworkFull, "readonly": bawn.NetworkAllowlist} {
		put(t, in.projectFile(), "")
		in.Flags = Flags{Profile: &profile}
		if got := mustLoad(t, in).Isolation(in.Workspace).Network; got != want {
			t.Errorf("profile %q has %v; want %v", profile, got, want)
		}
	}
}

func TestEgressErrors(t *testing.T) {
	for line, want := range map[string]string{
		"isolation.hosts=['Example.org']":            `config.toml:1:18: host "Example.org" is not in normal form; write "example.org"`,
		"isolation.hosts=['a.test', '*']":            `config.toml:1:28: host "*": it would open every host`,
		"isolation.hosts=['localhost:5432']":         "isolation.host_ports",
		"isolation.http=['a.test get /']":            `config.toml:1:17: http rule "a.test get /": method "get": methods are in upper case; write "GET"`,
		"isolation.http=['a.test']":                  "want a host, methods and a path",
		"isolation.git=['a.test clone']":             `want "HOST fetch [REPOSITORY]" or "HOST push REPOSITORY REF"`,
		"isolation.git=['a.test push x main']":       `such as "refs/heads/main"`,
		"isolation.host_ports=['0']":                 "want GUEST:HOST",
		"isolation.ports=['a']":                      "want HOST:GUEST",
		"isolation.secrets=['a b']":                  `secret "a b" is no name`,
		"isolation.secrets=['']":                     `secret "" is no name`,
		"isolation.secrets=['-a']":                   `secret "-a" is no name`,
		"isolation.upstream_proxy='proxy.corp:1'":    `isolation.upstream_proxy: proxy "proxy.corp:1": want "http://HOST:PORT"`,
		"isolation.upstream_proxy='http://u:pw@p:1'": "a user and a password have no place",
		"isolation.ask_timeout='11m'":                "want 0s to 10m0s",
		"isolation.ask_timeout=120":                  `must be a string such as "90m"`,
		"isolation.resources.net_connections=0":      "want 1 to 65535",
		"isolation.host=['a.test']":                  `did you mean "isolation.hosts"`,
	} {
		in := world(t)
		put(t, in.User(), line)
		errs := refused(t, in)
		if all := errs.Error() + "; " + errs.Hint(); !strings.Contains(all, want) || strings.Contains(all, "pw") {
			t.Errorf("%s: %s; want %q", line, all, want)
		}
	}
}

// TestProjectMayOnlyNarrowEgress: each line by itself, in a project that nobody
// trusts.
func TestProjectMayOnlyNarrowEgress(t *testing.T) {
	const user = `[isolation]
network = "allowlist"
hosts = ["*.open.test", "ruled.test", "git.test:443", "10.0.0.0/8:22"]
http = ["ruled.test GET /v1/**"]
git = ["git.test fetch", "only.git.test push team/* refs/heads/agent/*"]
host_ports = ["5432"]
ports = ["8080:3000"]
secrets = ["gh"]
ask_timeout = "60s"
`
	for line, want := range map[string]string{
		"hosts=['a.open.test','*.b.open.test:80','10.1.0.0/16:22']": "",
		"hosts=['open.test']":                               `would widen isolation.hosts by "open.test"`,
		"hosts=['a.open.test:22']":                          "would widen isolation.hosts",
		"hosts=['10.1.2.3']":                                "would widen isolation.hosts",
		"http=['a.open.test GET /', 'a.open.test POST /x']": "",
		"http=['*.open.test:443 GET /**']":                  "",
		"http=['ruled.test GET /v1/x']":                     "", // says nothing new
		"http=['ruled.test GET /v2/x']":                     "would widen isolation.http",
		"http=['ruled.test POST /v1/x']":                    "would widen isolation.http",
		"http=['open.test GET /']":                          "would widen isolation.http",
		"http=['a.open.test:22 GET /']":                     "would widen isolation.http",
		"http=['only.git.test GET /']":                      "would widen isolation.http",
		"http=['git.test:443 GET /']":                       "",
		"http=['git.test GET /']":                           "would widen isolation.http", // port 80 too
		"git=['git.test fetch a/b','only.git.test fetch team/x','only.git.test push team/x refs/heads/agent/1']": "",
		"git=['git.test push a/b refs/heads/x']":            "would widen isolation.git",
		"git=['only.git.test push team/x refs/heads/main']": "would widen isolation.git",
		"git=['a.open.test fetch']":                         "would widen isolation.git",
		"host_ports=['5432']":                               "",
		"host_ports=['5433']":                               "would widen isolation.host_ports",
		"host_ports=['1:5432']":                             "would widen isolation.host_ports",
		"ports=['8080:3000']":                               "",
		"ports=['3000']":                                    "would widen isolation.ports",
		"secrets=['gh']":                                    "",
		"secrets=['*']":                                     "would widen isolation.secrets",
		"upstream_proxy='http://evil.test:1'":               "can't be set by a project",
		"ask_timeout='0s'":                                  "",
		"ask_timeout='61s'":                                 "would widen isolation.ask_timeout",
		"resources.net_connections=5":                       "",
		"network='none'":                                    "",
	} {
		in := world(t)
		put(t, in.User(), user)
		put(t, in.projectFile(), "[isolation]\n"+line)
		c, err := Load(in)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
		if err == nil && strings.Contains(line, "open.test GET") {
			if got := c.Isolation(in.Workspace).Egress.HTTP; len(got) < 2 {
				t.Errorf("%s does not count: %q", line, got)
			}
		}
	}
}

// TestAFlagAboutAHostWins: a project's limit about a host that the command line
// speaks of would add to what that says.
func TestAFlagAboutAHostWins(t *testing.T) {
	in := world(t)
	put(t, in.User(), "isolation.network='allowlist'\nisolation.hosts=['*.a.test']\n")
	put(t, in.projectFile(), "isolation.http=['x.a.test GET /x','y.a.test GET /y']\n")
	in.Flags = Flags{HTTP: []string{"x.a.test POST /z"}}
	c := mustLoad(t, in)
	others := func(e string) bool { return !strings.Contains(e, ".a.test") }
	same(t, []string{"x.a.test POST /z", "y.a.test GET /y"}, slices.DeleteFunc(c.Isolation(in.Workspace).Egress.HTTP, others))
	var shown []string
	for _, o := range c.Origins() {
		if o.Key == "isolation.http" && !others(o.Show()) {
			shown = append(shown, o.Show())
		}
	}
	same(t, []string{`"x.a.test POST /z"`, `"y.a.test GET /y"`}, shown)
}

func TestPinnedHTTPIsNotLimited(t *testing.T) {
	in := world(t)
	put(t, in.ManagedPath, "pinned=['isolation.http']\n[isolation]\nnetwork='allowlist'\nhosts=['a.test']\n")
	put(t, in.projectFile(), "isolation.http=['a.test GET /']\n")
	if errs := refused(t, in); !strings.Contains(errs.Error(), "isolation.http is pinned at") {
		t.Error(errs)
	}
}

func TestEgressFlags(t *testing.T) {
	for _, tt := range []struct {
		name  string
		user  string
		flags Flags
		want  string // the network, or part of the error
	}{
		{"allow implies", "", Flags{Hosts: []string{"a.test"}}, "allowlist"},
		{"http implies", "", Flags{HTTP: []string{"a.test GET /"}}, "allowlist"},
		{"git implies", "", Flags{Git: []string{"a.test fetch"}}, "allowlist"},
		{"host-port implies", "", Flags{HostPorts: []string{"5432"}}, "allowlist"},
		{"secret implies", "", Flags{Secrets: []string{"gh"}}, "allowlist"},
		{"over a profile", "", Flags{Profile: ptr("strict"), Hosts: []string{"a.test"}}, "allowlist"},
		{"over the file", "isolation.network='full'", Flags{Hosts: []string{"a.test"}}, "allowlist"},
		{"said as well", "", Flags{Net: ptr("allowlist"), Hosts: []string{"a.test"}}, "allowlist"},
		{"published", "", Flags{Net: ptr("allowlist"), Ports: []string{"3000"}}, "allowlist"},
		{"publishing opens nothing", "isolation.network='none'", Flags{Ports: []string{"3000"}}, `--publish: it would not count, since the network is "none"; want --net allowlist`},
		{"none and allow", "", Flags{Net: ptr("none"), Hosts: []string{"a.test"}}, `--allow: it would not count, since the network is "none"`},
		{"the agent opens no network", "isolation.network='none'", Flags{SSHAgent: true}, `--ssh-agent: it would not count, since the network is "none"`},
		{"none and a known host", "isolation.hosts=['a.test']", Flags{Net: ptr("none"), Hosts: []string{"a.test"}}, `--allow: it would not count, since the network is "none"`},
		{"full and http", "", Flags{Net: ptr("full"), HTTP: []string{"a.test GET /"}}, `--http: it would not count, since the network is "full"`},
		{"no host", "", Flags{Hosts: []string{"A.test"}}, `--allow: host "A.test" is not in normal form; write "a.test"`},
		{"no rule", "", Flags{Git: []string{"x"}}, `--git: git rule "x"`},
		{"too long", "", Flags{AskTimeout: ptr("1h")}, `--ask-timeout: "1h" is refused; want 0s to 10m0s`},
	} {
		in := world(t)
		put(t, in.User(), tt.user)
		in.Flags = tt.flags
		c, err := Load(in)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = c.Isolation(in.Workspace).Network.String()
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
	}
}

func TestPinnedNetworkHoldsAgainstAllow(t *testing.T) {
	in := world(t)
	put(t, in.ManagedPath, "pinned=['isolation.network']\nisolation.network='none'\n")
	in.Flags = Flags{Hosts: []string{"a.test"}}
	if errs := refused(t, in); !strings.Contains(errs.Error(), "isolation.network is pinned at") {
		t.Error(errs)
	}
}

// TestDocsExamples: what the page about the network shows can be written so.
func TestDocsExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	tried := 0
	for _, b := range blocks {
		text := string(b[1])
		if strings.HasPrefix(text, "[[rule]]") {
			continue
		}
		in := world(t)
		put(t, in.User(), "[isolation]\n"+strings.TrimPrefix(text, "[isolation]\n"))
		mustLoad(t, in)
		tried++
	}
	for _, quoted := range regexp.MustCompile("`(hosts|http|git|host_ports|ports|secrets|network) = [^`]*`").FindAllString(string(page), -1) {
		in := world(t)
		put(t, in.User(), "[isolation]\n"+strings.Trim(quoted, "`"))
		mustLoad(t, in)
		tried++
	}
	if tried < 6 {
		t.Errorf("only %d examples were found", tried)
	}
}
