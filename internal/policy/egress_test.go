package policy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

var sessionEgress = bawn.Egress{
	Hosts: []string{"plain.test", "*.sub.test:443,8443", "both.test", "10.1.2.3:5432", "192.0.2.0/24:22", "[2001:db8::1]:443", "xn--bcher-kva.test", "hostgit.test"},
	HTTP:  []string{"api.test GET,HEAD /v1/**", "api.test POST /v1/run", "both.test GET /ok/*"},
	Git:   []string{"git.test fetch team/*", "git.test push team/app refs/heads/agent/*", "hostgit.test fetch"},
}

func egressOf(t testing.TB, rules ...bawn.Rule) Egress {
	t.Helper()
	p, err := New(rules, Options{})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := netrule.Compile(sessionEgress)
	if err != nil {
		t.Fatal(err)
	}
	return Egress{Policy: p, Session: ask4(""), Rules: entries}
}

func reach(resource string, args ...string) bawn.Action {
	return bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: resource, Args: args}
}

func (e Egress) says(t testing.TB, a bawn.Action) bawn.Decision {
	t.Helper()
	d, err := e.Decide(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Trace) > 0 && Replay(d.Trace) != d.Verdict {
		t.Errorf("%s %q: the trace says %v, the decision %v: %v", a.Resource, a.Args, Replay(d.Trace), d.Verdict, d.Trace)
	}
	return d
}

func TestEgressByEntries(t *testing.T) {
	for _, tt := range []struct {
		ask  string // resource and arguments
		want bawn.Verdict
		rule string
		why  string
	}{
		{"plain.test:443", allow, "isolation:hosts:plain.test", `lists "plain.test"`},
		{"PLAIN.test.:80", allow, "isolation:hosts:plain.test", ""},
		{"plain.test:22", ask, "builtin:host", ""},
		{"a.sub.test:8443", allow, "isolation:hosts:*.sub.test:443,8443", ""},
		{"sub.test:443", ask, "builtin:host", ""},
		{"unknown.test:443", ask, "builtin:host", "no rule names the host"},
		{"db:5432", ask, "builtin:host", ""},

		{"10.1.2.3:5432", allow, "isolation:hosts:10.1.2.3:5432", ""},
		{"[::ffff:10.1.2.3]:5432", allow, "isolation:hosts:10.1.2.3:5432", ""},
		{"10.1.2.3:5433", deny, RuleAddress, "an address is reached only if"},
		{"192.0.2.77:22", allow, "isolation:hosts:192.0.2.0/24:22", ""},
		{"93.184.216.34:443", deny, RuleAddress, "an address is reached only if"},
		{"[2001:db8::1]:443", allow, "isolation:hosts:[2001:db8::1]:443", ""},
		{"[2001:db8::2]:443", deny, RuleAddress, "[2001:db8::2]:443: an address"},
		{"169.254.169.254:80", deny, RuleAddress, ""},
		{"127.0.0.1:80", deny, RuleAddress, "isolation.host_ports"},
		{"localhost:80", deny, RuleAddress, "isolation.host_ports"},
		{"xn--bcher-kva.test:443", allow, "isolation:hosts:xn--bcher-kva.test", ""},
		{"xn--p1ai.test:443", deny, RuleAddress, "can look like another"},
		{"a.xn--p1ai:443", deny, RuleAddress, "can look like another"},

		{"api.test:443", allow, "isolation:http:api.test GET,HEAD /v1/**", ""},
		{"api.test:22", ask, "builtin:host", ""},
		{"https://api.test/v1/x GET", allow, "isolation:http:api.test GET,HEAD /v1/**", ""},
		{"http://api.test/v1/x HEAD", allow, "isolation:http:api.test GET,HEAD /v1/**", ""},
		{"https://api.test/v1/run POST", allow, "isolation:http:api.test POST /v1/run", ""},
		{"https://api.test/v1/ruN POST", deny, "isolation:http", `no entry of isolation.http lists POST "/v1/ruN" for api.test; the nearest is "api.test POST /v1/run"`},
		{"https://api.test/ GET", deny, "isolation:http", `the nearest is "api.test GET,HEAD /v1/**"`},
		{"https://api.test GET", deny, "isolation:http", ""},
		{"https://api.test:8443/v1/x GET", ask, "builtin:host", ""},
		{"https://api.test/v1/x fetch", deny, "isolation:http", "takes only the requests"},
		{"https://both.test/ok/1 GET", allow, "isolation:http:both.test GET /ok/*", ""},
		{"https://both.test/no GET", deny, "isolation:http", ""},
		{"https://plain.test/any/where DELETE", allow, "isolation:hosts:plain.test", ""},
		{"https://plain.test/a/b.git push refs/heads/x", allow, "isolation:hosts:plain.test", ""},
		{"https://unknown.test/x GET", ask, "builtin:host", ""},

		{"git.test:22", allow, "isolation:git:git.test fetch team/*", ""},
		{"git.test:80", ask, "builtin:host", ""},
		{"https://git.test/team/x.git fetch", allow, "isolation:git:git.test fetch team/*", ""},
		{"ssh://git.test/team/x.git fetch", allow, "isolation:git:git.test fetch team/*", ""},
		{"ssh://git.test/other/x fetch", deny, "isolation:git", `no entry of isolation.git lists fetch "other/x" for git.test; the nearest is "git.test fetch team/*"`},
		{"ssh://git.test/team/app.git push refs/heads/agent/1", allow, "isolation:git:git.test push team/app refs/heads/agent/*", ""},
		{"ssh://git.test/team/app.git push refs/heads/agent/1 refs/heads/main", deny, "isolation:git", `push "team/app" "refs/heads/main"`},
		{"ssh://git.test/team/app.git push refs/heads/main refs/heads/agent/1", deny, "isolation:git", ""},
		{"ssh://git.test/team/x.git push refs/heads/agent/1", deny, "isolation:git", ""},
		{"ssh://git.test/team/x.git fetch user=me path=/team/x", allow, "isolation:git:git.test fetch team/*", ""},
		{"ssh://git.test/other/x fetch user=me", deny, "isolation:git", ""},
		{"ssh://git.test/team/app.git push refs/heads/agent/1 path=/team/app", allow, "isolation:git:git.test push team/app refs/heads/agent/*", ""},
		{"ssh://git.test/team/app.git push refs/heads/main user=me path=/team/app", deny, "isolation:git", `push "team/app" "refs/heads/main"`},
		{"ssh://git.test/../x fetch", deny, "isolation:git", "names no repository"},
		{"https://git.test/team/x.git GET", deny, "isolation:git", "is open for git only"},
		{"https://git.test/team/x.git/info/refs GET", deny, "isolation:git", "is git's"},
		{"https://hostgit.test/page GET", allow, "isolation:hosts:hostgit.test", ""},
		{"https://hostgit.test/a.git/git-receive-pack POST", deny, "isolation:git", "is git's"},
		{"https://hostgit.test/a.git/git-upload-pack POST", deny, "isolation:git", "is git's"},
		{"https://hostgit.test/a.git push refs/heads/x", deny, "isolation:git", ""},
		{"https://hostgit.test/a.git fetch", allow, "isolation:git:hostgit.test fetch", ""},
	} {
		f := strings.Fields(tt.ask)
		d := egressOf(t).says(t, reach(f[0], f[1:]...))
		if d.Verdict != tt.want || d.Rule != tt.rule || !strings.Contains(d.Reason, tt.why) {
			t.Errorf("%s: %v by %q: %s; want %v by %q with %q", tt.ask, d.Verdict, d.Rule, d.Reason, tt.want, tt.rule, tt.why)
		}
		if wantSource := strings.HasPrefix(tt.rule, "isolation:"); (d.Source == bawn.SessionSource) != wantSource {
			t.Errorf("%s: source %v", tt.ask, d.Source)
		}
	}
}

// TestEgressRefusesWhatItCannotRead: nothing here is asked about either.
// TestEgressClosed: what is closed is denied where a rule of the user's would
// allow it, and an entry as narrow still counts.
func TestEgressClosed(t *testing.T) {
	user := bawn.Rule{ID: "u", Kind: bawn.Network, Pattern: "*.test", Verdict: allow, Source: bawn.User}
	e := egressOf(t, user)
	closed := sessionEgress
	closed.Closed = []string{"plain.test:443", "unknown.test", "api.test", "sub.test"}
	rules, err := netrule.Compile(closed)
	if err != nil {
		t.Fatal(err)
	}
	shut := e
	shut.Rules = rules
	for _, tt := range []struct {
		a          bawn.Action
		rule       string
		want, open bawn.Verdict
	}{
		{reach("unknown.test:443"), RuleClosed, deny, allow},
		{reach("unknown.test:22"), "user:u", allow, allow}, // only the ports that are said
		{reach("https://unknown.test/", "GET"), RuleClosed, deny, allow},
		{reach("https://unknown.test/a.git", "fetch"), RuleClosed, deny, allow},
		{reach("plain.test:443"), "isolation:hosts:plain.test", allow, allow},
		{reach("https://api.test/v1/x", "GET"), "isolation:http:api.test GET,HEAD /v1/**", allow, allow},
		{reach("https://api.test/v2", "GET"), RuleHTTP, deny, deny},
		{reach("sub.test:443"), RuleClosed, deny, allow},
		{reach("a.sub.test:443"), "isolation:hosts:*.sub.test:443,8443", allow, allow},
	} {
		if d := shut.says(t, tt.a); d.Verdict != tt.want || !strings.HasSuffix(d.Rule, strings.TrimPrefix(tt.rule, "user:")) {
			t.Errorf("%s %q: %v by %q (%s); want %v by %q", tt.a.Resource, tt.a.Args, d.Verdict, d.Rule, d.Reason, tt.want, tt.rule)
		}
		if d := e.says(t, tt.a); d.Verdict != tt.open {
			t.Errorf("control: %s %q: %v by %q; want %v where nothing is closed", tt.a.Resource, tt.a.Args, d.Verdict, d.Rule, tt.open)
		}
	}
}

func TestEgressRefusesWhatItCannotRead(t *testing.T) {
	for _, a := range []bawn.Action{
		{}, reach(""), reach("plain.test"), reach("plain.test:"), reach("plain.test:0"), reach("plain.test:080"), reach("plain.test:65536"), reach("plain.test:443", "GET"), reach(":443"),
		reach("2001:db8::1:443"), reach("[2001:db8::1]"), reach("2130706433:80"), reach("0x7f.1:80"), reach("127.1:80"), reach("u@plain.test:443"), reach("plain.test\x00:443"), reach("pl\u00e4in.test:443"),
		reach("https://plain.test/"), reach("https://plain.test/", "GET", "POST"), reach("https://plain.test/", "get"), reach("https://plain.test/", ""), reach("https://plain.test/", "G T"),
		reach("https://plain.test/x", "push"), reach("https://plain.test/x", "fetch", "refs/x"), reach("ssh://plain.test/x", "GET"), reach("ftp://plain.test/", "GET"), reach("https:///x", "GET"),
		reach("https://u@plain.test/", "GET"), reach("https://plain.test:0/", "GET"), reach("ssh://git.test/team/app", "push", ""),
		reach("ssh://plain.test/x", "push", "user=me"), reach("ssh://plain.test/x", "path=/x"), reach("ssh://plain.test/x", "fetch", "path=/x", "user=me"), reach("ssh://plain.test/x", "fetch", "user=me", "user=you"),
		reach("https://plain.test/x", "fetch", "user=me"), reach("https://plain.test/x", "GET", "path=/x"),
		{Kind: bawn.Network, Operation: bawn.Read, Resource: "plain.test:443"}, {Kind: bawn.Command, Operation: bawn.Exec, Resource: "true"},
	} {
		if d := egressOf(t).says(t, a); d.Verdict != deny || d.Reason == "" || d.Rule == "" {
			t.Errorf("%+v: %v by %q: %s", a, d.Verdict, d.Rule, d.Reason)
		}
	}
	if d := (Egress{}).says(t, reach("plain.test:443")); d.Verdict != deny || d.Rule != "builtin:no-policy" {
		t.Errorf("without a policy: %v by %q", d.Verdict, d.Rule)
	}
	e := egressOf(t)
	e.Rules = nil
	if d := e.says(t, reach("plain.test:443")); d.Verdict != ask {
		t.Errorf("without entries: %v by %q", d.Verdict, d.Rule)
	}
}

func TestEgressAndThePolicy(t *testing.T) {
	rule := func(s bawn.Source, pattern string, v bawn.Verdict) bawn.Rule {
		return bawn.Rule{ID: "r-" + s.String() + "-" + v.String(), Kind: bawn.Network, Pattern: pattern, Verdict: v, Source: s}
	}
	for _, tt := range []struct {
		name  string
		rules []bawn.Rule
		ask   string
		want  bawn.Verdict
		by    string
	}{
		{"the user denies", []bawn.Rule{rule(bawn.User, "plain.test", deny)}, "plain.test:443", deny, "r-user-deny"},
		{"on that port", []bawn.Rule{rule(bawn.User, "plain.test:80", deny)}, "plain.test:443", allow, "isolation:hosts:plain.test"},
		{"the managers deny", []bawn.Rule{rule(bawn.Managed, "*", deny)}, "plain.test:443", deny, "r-managed-deny"},
		{"although the user allows", []bawn.Rule{rule(bawn.Managed, "*", deny), {ID: "u", Kind: bawn.Network, Pattern: "*", Verdict: allow, Source: bawn.User, Priority: 9}}, "plain.test:443", deny, "r-managed-deny"},
		{"the project denies", []bawn.Rule{rule(bawn.Project, "*.test", deny)}, "plain.test:443", deny, "r-project-deny"},
		{"the session denies", []bawn.Rule{rule(bawn.SessionSource, "plain.test", deny)}, "plain.test:443", deny, "r-session-deny"},
		{"the managers ask", []bawn.Rule{rule(bawn.Managed, "*", ask)}, "plain.test:443", ask, "r-managed-ask"},
		{"the project asks", []bawn.Rule{rule(bawn.Project, "*", ask)}, "plain.test:443", ask, "r-project-ask"},
		{"the user's question was answered by the entry", []bawn.Rule{rule(bawn.User, "*", ask)}, "plain.test:443", allow, "isolation:hosts:plain.test"},
		{"a request at a denied host", []bawn.Rule{rule(bawn.User, "api.test", deny)}, "https://api.test/v1/x GET", deny, "r-user-deny"},
		{"a rule does not open what entries close", []bawn.Rule{rule(bawn.User, "*", allow)}, "https://api.test/x GET", deny, "isolation:http"},
		{"the user allows", []bawn.Rule{rule(bawn.User, "unknown.test:443", allow)}, "unknown.test:443", allow, "r-user-allow"},
		{"for this session", []bawn.Rule{rule(bawn.SessionSource, "unknown.test", allow)}, "unknown.test:443", allow, "r-session-allow"},
		{"a request there", []bawn.Rule{rule(bawn.User, "unknown.test", allow)}, "https://unknown.test/x GET", allow, "r-user-allow"},
		{"no rule opens an address", []bawn.Rule{rule(bawn.User, "*", allow)}, "93.184.216.34:443", deny, RuleAddress},
		{"nor an international name", []bawn.Rule{rule(bawn.User, "*", allow)}, "xn--p1ai.test:443", deny, RuleAddress},
		{"nor the loopback", []bawn.Rule{rule(bawn.User, "*", allow)}, "localhost:443", deny, RuleAddress},
		{"a denied address of an entry", []bawn.Rule{rule(bawn.User, "10.1.2.3", deny)}, "10.1.2.3:5432", deny, "r-user-deny"},
	} {
		f := strings.Fields(tt.ask)
		if d := egressOf(t, tt.rules...).says(t, reach(f[0], f[1:]...)); d.Verdict != tt.want || d.Rule != tt.by {
			t.Errorf("%s: %v by %q; want %v by %q: %v", tt.name, d.Verdict, d.Rule, tt.want, tt.by, d.Trace)
		}
	}
}

// TestEgressByMode: entries hold in every mode that exists, and only moderate
// or full autonomy asks, except in strict mode, which always does.
func TestEgressByMode(t *testing.T) {
	unknown := map[bawn.Mode][4]bawn.Verdict{ // by autonomy: none, limited, moderate, full
		bawn.ModePlan: {deny, deny, deny, deny}, bawn.ModeStrict: {ask, deny, ask, ask}, bawn.ModeSafe: {deny, deny, ask, ask},
		bawn.ModeNormal: {deny, deny, ask, ask}, bawn.ModeAuto: {deny, deny, ask, ask}, bawn.ModePermissive: {deny, deny, ask, ask},
	}
	for mode, row := range unknown {
		for autonomy, want := range row {
			e := egressOf(t)
			e.Session.Mode, e.Session.Autonomy = mode, bawn.Autonomy(autonomy)
			if d := e.says(t, reach("unknown.test:443")); d.Verdict != want {
				t.Errorf("%v, autonomy %v: %v by %q; want %v", mode, bawn.Autonomy(autonomy), d.Verdict, d.Rule, want)
			}
			if d := e.says(t, reach("plain.test:443")); d.Verdict != allow {
				t.Errorf("%v, autonomy %v: the entry gives %v by %q", mode, bawn.Autonomy(autonomy), d.Verdict, d.Rule)
			}
		}
	}
	e := egressOf(t)
	e.Session.Mode = 99
	if d := e.says(t, reach("plain.test:443")); d.Verdict != deny {
		t.Errorf("a mode that is none: %v", d.Verdict)
	}
	e = egressOf(t)
	e.Session.Autonomy = 99
	if d := e.says(t, reach("plain.test:443")); d.Verdict != deny {
		t.Errorf("an autonomy that is none: %v", d.Verdict)
	}
}

// TestEgressNeverAllowsUnsaid: whatever a guest asks for, it is allowed only by
// an entry that matches it or by a rule that allows.
func TestEgressNeverAllowsUnsaid(t *testing.T) {
	e := egressOf(t)
	allowed := 0
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SampledFrom([]string{"plain.test", "api.test", "both.test", "git.test", "hostgit.test", "a.sub.test", "unknown.test", "10.1.2.3", "127.0.0.1", "localhost", "xn--p1ai.test", "PLAIN.TEST.", "evil.test\x00.plain.test", "[::1]"}).Draw(t, "host")
		port := rapid.SampledFrom([]string{"", ":443", ":80", ":22", ":5432", ":8443", ":0", ":x"}).Draw(t, "port")
		path := rapid.SampledFrom([]string{"", "/", "/v1/x", "/v1/run", "/ok/1", "/team/app.git", "/team/x", "/info/refs", "/../x"}).Draw(t, "path")
		scheme := rapid.SampledFrom([]string{"", "https://", "http://", "ssh://", "ws://"}).Draw(t, "scheme")
		args := rapid.SampledFrom([][]string{nil, {"GET"}, {"POST"}, {"get"}, {"fetch"}, {"push", "refs/heads/agent/1"}, {"push", "refs/heads/main"}, {"push", "refs/heads/agent/1", "refs/heads/main"}, {"CONNECT"}}).Draw(t, "args")
		d, err := e.Decide(context.Background(), reach(scheme+host+port+path, args...))
		if err != nil || Replay(d.Trace) != d.Verdict && len(d.Trace) > 0 {
			t.Fatalf("%v, %v", d, err)
		}
		if d.Verdict != allow {
			return
		}
		allowed++
		entry, ok := strings.CutPrefix(d.Rule, "isolation:")
		kind, text, _ := strings.Cut(entry, ":")
		if listed := map[string][]string{"hosts": sessionEgress.Hosts, "http": sessionEgress.HTTP, "git": sessionEgress.Git}[kind]; !ok || !strings.Contains(strings.Join(listed, "\n")+"\n", text+"\n") {
			t.Fatalf("allowed by %q", d.Rule)
		}
		if host == "unknown.test" || host == "127.0.0.1" || host == "localhost" || host == "xn--p1ai.test" || strings.Contains(host, "\x00") || len(args) > 2 && host == "git.test" {
			t.Fatalf("%q %q is allowed by %q", host, args, d.Rule)
		}
	})
	if allowed == 0 {
		t.Error("nothing was allowed: the property was not tried")
	}
}

func BenchmarkEgress(b *testing.B) {
	for _, n := range []int{10, 1000} {
		var all bawn.Egress
		for i := range n {
			switch i % 4 {
			case 0:
				all.Hosts = append(all.Hosts, fmt.Sprintf("h%d.test", i))
			case 1:
				all.Hosts = append(all.Hosts, fmt.Sprintf("*.h%d.test", i))
			case 2:
				all.HTTP = append(all.HTTP, fmt.Sprintf("h%d.test GET /v1/**", i))
			default:
				all.Git = append(all.Git, fmt.Sprintf("h%d.test fetch", i))
			}
		}
		e := egressOf(b)
		rules, err := netrule.Compile(all)
		if err != nil {
			b.Fatal(err)
		}
		e.Rules = rules
		for _, a := range []bawn.Action{reach("h4.test:443"), reach("https://h6.test/v1/x", "GET"), reach("https://h7.test/a/b.git", "fetch")} {
			b.Run(fmt.Sprintf("%d/%s", n, a.Resource), func(b *testing.B) {
				for b.Loop() {
					sink, _ = e.Decide(context.Background(), a)
				}
			})
		}
	}
}

// FuzzEgress: what a guest writes into a request never panics, never makes a
// trace that says something else, and is allowed by an entry only.
func FuzzEgress(f *testing.F) {
	for _, s := range []string{"plain.test:443", "https://api.test/v1/x GET", "ssh://git.test/team/app.git push refs/heads/agent/1", "[2001:db8::1]:443", "[::1", "]:1", "https://", "://", "a:b:c", "https://[::1]:1/ GET", "xn--a:1", ":", "http://plain.test:/ GET", "https://git.test/team/x%2f.git fetch"} {
		resource, args, _ := strings.Cut(s, " ")
		f.Add(resource, args)
	}
	e := egressOf(f)
	f.Fuzz(func(t *testing.T, resource, args string) {
		var list []string
		if args != "" {
			list = strings.Split(args, " ")
		}
		d := e.says(t, reach(resource, list...))
		if d.Verdict == allow && !strings.HasPrefix(d.Rule, "isolation:") && d.Source != bawn.Builtin {
			t.Errorf("%q %q is allowed by %q", resource, list, d.Rule)
		}
		if d.Reason == "" || d.Rule == "" {
			t.Errorf("%q %q: no reason: %+v", resource, list, d)
		}
	})
}

// TestSSHPlace: what is usual is not said, and what is said is taken off again.
func TestSSHPlace(t *testing.T) {
	for want, place := range map[string]struct {
		user   string
		rooted bool
	}{"": {"git", false}, "user=me": {"me", false}, "path=/srv/a": {"", true}, "user=me path=/srv/a": {"me", true}} {
		got := SSHPlace(place.user, place.rooted, "srv/a")
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %q", place, got, want)
		}
		if rest := withoutPlace(append([]string{"push", "refs/heads/a"}, got...)); len(rest) != 2 {
			t.Errorf("%+v leaves %q", place, rest)
		}
	}
}
