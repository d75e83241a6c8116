package egress_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// recorded returns what the audit log says of a session, or of all for "".
func (d *account) recorded(t *testing.T, session string) (events []bawn.Event, text string) {
	t.Helper()
	argv := []string{d.bawn(t), "audit", "query", "--json", "--limit", "0"}
	if session != "" {
		argv = append(argv, "--session", session)
	}
	r := d.run(t, argv...)
	for line := range strings.Lines(r.out) {
		var entry struct{ Event bawn.Event }
		check(t, json.Unmarshal([]byte(line), &entry))
		events = append(events, entry.Event)
	}
	return events, r.out
}

// TestAuditOfEgress asks the log what a session has done in the network.
func TestAuditOfEgress(t *testing.T) {
	d := newAccount(t)
	value := "sk-" + rand.Text()
	d.vault(t, "model", value, "--host api.test --header x-api-key --env MODEL_KEY")
	flags := append(allow("allowed.test", "allowed.test:7777"), "--secret", "model", "--http", "api.test GET,POST /use/**")
	d.inside(t, flags, "curl -sS -m 30 https://allowed.test/another")
	put(t, strings.Join([]string{
		"$PROBE tcp allowed.test:7777 abcde",
		"curl -sS -m 30 -o /dev/null 'https://allowed.test/bytes?n=100000'",
		"curl -sS -m 30 -H \"x-api-key: $MODEL_KEY\" 'https://api.test/use/it?q=private'",
		"curl -sS -m 30 -d sent 'https://api.test/use/post?q=private'",
		"curl -sS -m 30 -o /dev/null 'https://api.test/bytes?n=7&q=private'",
		"curl -sS -m 30 http://denied.test/private",
	}, "\n"), d.work, "script") // a file, as the command line is in the log
	m := d.now(t)
	d.inside(t, flags, ". ./script")
	if seen := fmt.Sprint(d.since(t, m)); strings.Count(seen, value) != 1 || !strings.Contains(seen, "q=private") {
		t.Errorf("the control: outside there was %s", seen)
	}
	all, _ := d.recorded(t, "")
	session := all[len(all)-1].Session
	events, text := d.recorded(t, session)
	if len(events) == len(all) || slices.ContainsFunc(events, func(e bawn.Event) bool { return e.Session != session }) {
		t.Errorf("of %d events %d are this session's", len(all), len(events))
	}
	for _, leaked := range []string{value, "private", "?"} {
		if strings.Contains(text, leaked) {
			t.Errorf("%q is in the log: %s", leaked, text)
		}
	}
	wantRecords(t, events)
	if r := d.run(t, d.bawn(t), "audit", "verify"); r.code != 0 {
		t.Errorf("verify: %s%s", r.out, r.err)
	}
}

// wantRecords compares what is in the log of the network. Bytes of TLS differ
// from run to run: theirs are only counted.
func wantRecords(t *testing.T, events []bawn.Event) {
	t.Helper()
	const raw, splice, opened = "isolation:hosts:allowed.test:7777", "isolation:hosts:allowed.test", "isolation:http:api.test GET,POST /use/**"
	want := []string{
		"connect allowed.test:7777 [] allow " + raw,
		"end allowed.test:7777 [] allow " + raw + " from allowed.test:7777 in 5 out 5",
		"connect allowed.test:443 [] allow " + splice,
		"end allowed.test:443 [] allow " + splice + " from allowed.test:443 in >100000 out >0",
		"connect api.test:443 [] allow " + opened,
		"connect https://api.test/ [GET lends=model] allow " + opened, // the operation; the path is in the details
		"end https://api.test/use/it [GET] allow " + opened + " from api.test:443 in 30 out 0 status 200 lent model",
		"end api.test:443 [] allow " + opened + " in >0 out >0",
		"connect api.test:443 [] allow " + opened,
		"connect https://api.test/use/post [POST] allow " + opened,
		"end https://api.test/use/post [POST] allow " + opened + " from api.test:443 in 33 out 4 status 200",
		"end api.test:443 [] allow " + opened + " in >0 out >0",
		"connect api.test:443 [] allow " + opened,
		"connect https://api.test/bytes [GET] deny isolation:http",
		"end api.test:443 [] allow " + opened + " in >0 out >0",
		"connect denied.test:80 [] deny builtin:not-approved",
	}
	var got []string
	for _, e := range events {
		if e.Kind != bawn.Network.String() {
			continue
		}
		got = append(got, recordLine(t, e))
		if e.Resolved == bawn.Deny && e.Reason == "" || e.Operation == "end" && e.Reason != "" {
			t.Errorf("the reason of %s is %q", recordLine(t, e), e.Reason)
		}
	}
	slices.Sort(want) // one connection's end may come after the next one's begin
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// recordLine says an event of the network in a line.
func recordLine(t *testing.T, e bawn.Event) string {
	t.Helper()
	line := fmt.Sprintf("%s %s %v %s %s", e.Operation, e.Resource, e.Args, e.Resolved, e.Rule)
	if at := e.Details["address"]; at != "" {
		line += " from " + named(t, at)
	}
	tls := strings.HasSuffix(e.Resource, ":443")
	for _, way := range []string{"in", "out"} {
		text, ok := e.Details["bytes"+strings.ToUpper(way[:1])+way[1:]]
		if n, _ := strconv.ParseInt(text, 10, 64); tls && n > 100_000 {
			text = ">100000"
		} else if tls && n > 0 {
			text = ">0"
		}
		if ok {
			line += " " + way + " " + text
		}
	}
	for _, key := range []string{"status", "lent"} {
		if v := e.Details[key]; v != "" {
			line += " " + key + " " + v
		}
	}
	return line
}

// named gives an address outside its name back.
func named(t *testing.T, at string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(at)
	check(t, err)
	for _, name := range []string{"allowed.test", "api.test"} {
		for _, a := range addresses(name) {
			if net.ParseIP(a).Equal(net.ParseIP(host)) {
				return name + ":" + port
			}
		}
	}
	return at
}
