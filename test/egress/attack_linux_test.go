package egress_test

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An attack is a line of shell that reaches something on the machine, and must
// not as a guest.
type attack struct {
	line  string
	want  string   // what it says when it succeeds
	flags []string // of the guest; nil: allowed.test is allowed
	may   []string // hosts that the guest may reach besides allowed.test
	slow  bool     // it is no connection that is refused: it waits for an answer
}

// soon is how long a refused program may take to know it, on a busy machine.
const soon = 20 * time.Second

// allow names hosts on the command line.
func allow(entries ...string) []string {
	var flags []string
	for _, e := range entries {
		flags = append(flags, "--allow", e)
	}
	return flags
}

// attacks runs each twice, on the machine and as a guest; those with the same
// flags in one session.
func attacks(t *testing.T, d *account, list map[string]attack) {
	t.Helper()
	groups := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		a := list[name]
		if a.flags == nil {
			a.flags = allow("allowed.test")
		}
		list[name] = a
		key := strings.Join(a.flags, " ")
		groups[key] = append(groups[key], name)
	}
	for _, names := range groups {
		group := make([]attack, len(names))
		for i, name := range names {
			group[i] = list[name]
		}
		d.group(t, names, group)
	}
}

// group runs attacks one after the other in one session.
func (d *account) group(t *testing.T, names []string, group []attack) {
	t.Helper()
	lines := make([]string, len(group))
	all := attack{flags: group[0].flags}
	for i, a := range group {
		lines[i] = a.line
		all.may = append(all.may, a.may...)
	}
	bare := d.lines(t, func(script string) result { return d.sh(t, script) }, lines)
	m := d.now(t)
	inside := d.lines(t, func(script string) result { return d.inside(t, all.flags, script) }, lines)
	for i, a := range group {
		t.Run(names[i], func(t *testing.T) {
			if !strings.Contains(bare[i].out, a.want) {
				t.Errorf("the control says %q, want %q", bare[i].out, a.want)
			}
			if strings.Contains(inside[i].out, a.want) {
				t.Errorf("the guest says %q", inside[i].out)
			}
			if inside[i].took > soon && !a.slow {
				t.Errorf("it took %v to be refused", inside[i].took)
			}
			t.Logf("after %v: %.200s", inside[i].took, inside[i].out)
		})
	}
	d.nothingElse(t, m, all)
}

// lines runs lines of shell in one session and returns what became of each.
func (d *account) lines(t *testing.T, run func(script string) result, lines []string) []result {
	t.Helper()
	const mark = "@@next "
	var script strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&script, "(%s) 2>&1 </dev/null; echo; echo '%s'$(date +%%s%%N)\n", line, mark)
	}
	r := run("echo '" + mark + "'$(date +%s%N)\n" + script.String())
	parts := strings.Split(r.out, mark)
	if len(parts) != len(lines)+2 {
		t.Fatalf("%d parts for %d lines: %.2000q\n%.2000s", len(parts)-2, len(lines), r.out, r.err)
	}
	results := make([]result, len(lines))
	stamp := func(i int) int64 {
		first, _, _ := strings.Cut(parts[i+1], "\n")
		n, err := strconv.ParseInt(first, 10, 64)
		check(t, err)
		return n
	}
	for i := range lines {
		_, out, _ := strings.Cut(parts[i+1], "\n")
		results[i] = result{out: out, took: time.Duration(stamp(i+1) - stamp(i))}
	}
	return results
}

// nothingElse wants that nobody outside was reached or asked for but those
// whom the guest may reach, and with no path that is called closed.
func (d *account) nothingElse(t *testing.T, m mark, a attack) {
	t.Helper()
	may := append(a.may, "allowed.test")
	var places []string
	for _, name := range may {
		if slices.Contains(zones, name) {
			places = append(places, rebindFirst, "127.0.0.1")
		} else {
			places = append(places, addresses(name)...)
		}
	}
	for _, e := range d.since(t, m) {
		local, _, _ := net.SplitHostPort(e.Local)
		host, _, _ := strings.Cut(e.Host, ":")
		if !slices.Contains(places, local) && !slices.Contains(places, plain6(local)) ||
			host != "" && !slices.Contains(may, host) || e.SNI != "" && !slices.Contains(may, e.SNI) || strings.Contains(e.Path, "closed") {
			t.Errorf("outside: %+v", e)
		}
	}
	for _, q := range d.questions(t, m) {
		_, name, _ := strings.Cut(q, " ")
		named := slices.ContainsFunc(a.flags, func(f string) bool { return strings.Split(f, ":")[0] == name })
		if !slices.Contains(may, name) && !named {
			t.Errorf("the resolver was asked %q", q)
		}
	}
}

// plain6 writes an IPv6 address as the map does.
func plain6(s string) string {
	for name := range hosts {
		for _, a := range addresses(name) {
			if net.ParseIP(a).Equal(net.ParseIP(s)) {
				return a
			}
		}
	}
	return s
}

// TestAddresses attacks with addresses that no rule names.
func TestAddresses(t *testing.T) {
	d := newAccount(t, "python3")
	const greeting, v6 = "this is", "[" + publicV6 + "15]"
	list := map[string]attack{
		"v4":                   {line: "curl -sS -m 30 http://93.184.215.15/", want: greeting},
		"v4 tls":               {line: "$PROBE tls 93.184.215.15:443 allowed.test allowed.test", want: greeting},
		"the allowed host's":   {line: "curl -sS -m 30 http://93.184.215.14/", want: greeting},
		"with its Host":        {line: "curl -sS -m 30 -H 'Host: allowed.test' http://93.184.215.15/", want: greeting},
		"v6":                   {line: "curl -sS -m 30 http://" + v6 + "/", want: greeting},
		"mapped":               {line: "curl -sS -m 30 'http://[::ffff:93.184.215.15]/'", want: greeting},
		"decimal":              {line: "curl -sS -m 30 http://1572394767/", want: greeting},
		"hexadecimal":          {line: "curl -sS -m 30 http://0x5db8d70f/", want: greeting},
		"octal":                {line: "curl -sS -m 30 http://0135.0270.0327.017/", want: greeting},
		"short":                {line: "curl -sS -m 30 http://93.12113679/", want: greeting},
		"pinned":               {line: "curl -sS -m 30 --resolve allowed.test:80:93.184.215.15 http://allowed.test/", want: greeting},
		"connect-to":           {line: "curl -sS -m 30 --connect-to allowed.test:80:denied.test:80 http://allowed.test/", want: greeting},
		"private":              {line: "curl -sS -m 30 http://10.77.0.2/", want: greeting},
		"metadata":             {line: "curl -sS -m 30 http://169.254.169.254/latest/meta-data/", want: greeting},
		"metadata v6":          {line: "curl -sS -m 30 'http://[fd00:ec2::254]/'", want: greeting},
		"CGNAT":                {line: "curl -sS -m 30 http://100.64.0.1/", want: greeting},
		"NAT64":                {line: "curl -sS -m 30 'http://[64:ff9b::a4d:2]/'", want: greeting},
		"6to4":                 {line: "curl -sS -m 30 'http://[2002:a4d:2::1]/'", want: greeting},
		"another port":         {line: "$PROBE tcp 93.184.215.15:7777 abc", want: "abc"},
		"first to speak":       {line: "$PROBE tcp 93.184.215.15:2525", want: "220 hello"},
		"UDP":                  {line: "$PROBE udp 93.184.215.15:7 abc", want: "abc"},
		"UDP by name":          {line: "$PROBE udp allowed.test:7 abc", want: "abc"},
		"UDP v6":               {line: "$PROBE udp " + v6 + ":7 abc", want: "abc"},
		"QUIC":                 {line: "$PROBE udp allowed.test:443 abc", want: "abc"},
		"ICMP":                 {line: "$PROBE ping 93.184.215.14", want: "pong"},
		"link-local":           {line: "curl -sS -m 30 http://" + linkLocal + "/", want: greeting},
		"a proxy of the world": {line: "curl -sS -m 30 -x http://93.184.215.24:3128 https://denied.test/", want: greeting},
	}
	attacks(t, d, list)
}

// TestNames attacks with names: what they look like, and where they lead.
func TestNames(t *testing.T) {
	d := newAccount(t)
	const greeting = "this is"
	list := map[string]attack{
		"denied":           {line: "curl -sS -m 30 https://denied.test/", want: greeting},
		"trailing dot":     {line: "curl -sS -m 30 http://denied.test./", want: greeting},
		"upper case":       {line: "curl -sS -m 30 http://DENIED.TEST/", want: greeting},
		"userinfo":         {line: "curl -sS -m 30 http://allowed.test@denied.test/", want: greeting},
		"alias":            {line: "curl -sS -m 30 http://alias.test/", want: greeting},
		"IDN":              {line: "curl -sS -m 30 http://bücher.test/", want: greeting},
		"IDN and wildcard": {line: "curl -sS -m 30 http://bücher.wild.test/", want: greeting, flags: allow("*.wild.test")},
		"below":            {line: "curl -sS -m 30 http://b.a.wild.test/", want: greeting, flags: allow("a.wild.test")},
		"above a wildcard": {line: "curl -sS -m 30 http://wild.test/", want: greeting, flags: allow("*.wild.test")},
		"beside":           {line: "curl -sS -m 30 http://notwild.test/", want: greeting, flags: allow("*.wild.test")},
		"another port":     {line: "curl -sS -m 30 http://allowed.test:8080/", want: greeting},
		"redirect":         {line: "curl -sSL -m 30 'http://allowed.test/redirect?to=http://denied.test/'", want: greeting},
		"redirect private": {line: "curl -sSL -m 30 'http://allowed.test/redirect?to=http://private.test/'", want: greeting},
		"rebinding":        {line: "curl -sS -m 30 -w '[%{remote_ip}]' http://rebind.test/; curl -sS -m 30 -w '[%{remote_ip}]' http://rebind.test/", want: "[10.77.0.2]", flags: allow("rebind.test"), may: []string{"rebind.test"}},
		"both kinds":       {line: "for i in 1 2 3 4; do curl -sS -m 30 -w '[%{remote_ip}]' http://mixed.test/; done", want: "[10.77.0.2]", flags: allow("mixed.test"), may: []string{"mixed.test"}},
	}
	closed := []string{
		"private.test", "private172.test", "private192.test", "metadata.test", "cgnat.test", "docs.test", "bench.test", "metadata6.test",
		"ula.test", "mapped.test", "nat64.test", "sixtofour.test", "teredo.test", "alias-private.test",
	}
	for _, name := range closed {
		list["leads to "+name] = attack{line: "curl -sS -m 30 http://" + name + "/", want: greeting, flags: allow(closed...)}
	}
	attacks(t, d, list)
}

// TestOwnMachine attacks what listens on the machine itself.
func TestOwnMachine(t *testing.T) {
	d := newAccount(t)
	port, hits := service(t)
	list := map[string]attack{}
	var named []string
	for _, name := range []string{"loop.test", "loop2.test", "zero.test", "own.test", "own-private.test", "own6.test", "loop6.test", "zero6.test"} {
		named = append(named, net.JoinHostPort(name, port))
	}
	for _, at := range named {
		list["by name "+at] = attack{line: "curl -sS -m 30 http://" + at + "/", want: "the machine", flags: allow(named...)}
	}
	for _, a := range []string{"127.0.0.1", "127.1", "2130706433", "0x7f000001", "127.8.8.8", "0.0.0.0", "localhost", "[::1]", "[::]", "[::ffff:127.0.0.1]", machineV4, machinePrivateV4, "[" + machineV6 + "]", "[" + machinePrivateV6 + "]"} {
		list["address "+a] = attack{line: "curl -sS -m 30 http://" + a + ":" + port + "/", want: "the machine"}
	}
	before := hits.Load()
	attacks(t, d, list)
	if got, want := hits.Load()-before, int64(len(list)); got != want {
		t.Errorf("the machine was reached %d times, want %d: by the controls alone", got, want)
	}
}

// service is an HTTP server on every address of the machine.
func service(t *testing.T) (port string, hits *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	check(t, err)
	hits = new(atomic.Int64)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		fmt.Fprintln(w, "the machine", r.URL.RawQuery)
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), hits
}
