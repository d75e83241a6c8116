package egress_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestSentPerHost: what a session sends to one host ends at the limit of the
// configuration, by whichever way it goes; to another host there is room.
func TestSentPerHost(t *testing.T) {
	k := newKeyring(t)
	upload := func(url string) string { // as much as the server hears, twice
		return strings.Repeat("head -c 1000000 /dev/zero | curl -sS -m 30 -o /dev/null -w 'got %{http_code} ' --data-binary @- "+url+"; ", 2)
	}
	opened := []string{"--http", "allowed.test GET,POST /**", "--allow", "other.test"}
	for name, c := range map[string]struct {
		line, want string
		flags      []string
	}{
		"spliced":   {upload("https://allowed.test/x"), "got 200 got 200", allow("allowed.test", "other.test")},
		"opened":    {upload("https://allowed.test/x"), "got 200 got 200", opened},
		"plain":     {upload("http://allowed.test/x"), "got 200 got 200", allow("allowed.test", "other.test")},
		"WebSocket": {upload("https://allowed.test/x") + "$PROBE ws allowed.test:443 allowed.test allowed.test /ws;", "hello", opened},
		"SSH":       {"head -c 3000000 /dev/zero | ssh -o BatchMode=yes " + k.user + "@db.test wc -c;", "3000000", append([]string{"--ssh-agent"}, allow("db.test:22", "other.test")...)},
	} {
		t.Run(name, func(t *testing.T) {
			line := c.line + " curl -sS -m 30 http://other.test/x"
			put(t, "", k.home, ".config/bawn/config.toml")
			if r := k.inside(t, c.flags, line); !strings.Contains(r.out, c.want) {
				t.Errorf("the control says %q %q", r.out, r.err)
			}
			put(t, "isolation.resources.net_out_mb = 1\n", k.home, ".config/bawn/config.toml")
			before := len(k.ends(t))
			r := k.inside(t, c.flags, line)
			if strings.Contains(r.out, c.want) || !strings.Contains(r.out, "this is other.test") {
				t.Errorf("with the limit: %q %q", r.out, r.err)
			}
			sent := map[string]int64{}
			for _, e := range k.ends(t)[before:] {
				if !strings.Contains(e.Resource, "://") { // else one request of a connection
					sent[e.Resource] += e.sent(t)
				}
			}
			for host, n := range sent {
				if n > 1<<20 {
					t.Errorf("%d bytes went to %s", n, host)
				}
			}
		})
	}
}

// An end is the event of a connection that was carried.
type end struct {
	Operation, Resource string
	Details             map[string]string
}

func (e end) sent(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(e.Details["bytesOut"], 10, 64)
	check(t, err)
	return n
}

// ends lists those in the audit log.
func (d *account) ends(t *testing.T) (list []end) {
	t.Helper()
	for line := range strings.Lines(d.run(t, d.bawn(t), "audit", "query", "--json").out) {
		var entry struct{ Event end }
		check(t, json.Unmarshal([]byte(line), &entry))
		if entry.Event.Operation == "end" && entry.Event.Details["bytesOut"] != "" {
			list = append(list, entry.Event)
		}
	}
	return list
}

// TestConnectionsAtATime: to one host no more than the configuration says.
func TestConnectionsAtATime(t *testing.T) {
	d := newAccount(t)
	line := `exec 3<>/dev/tcp/allowed.test/7777 4<>/dev/tcp/allowed.test/7777
echo one >&3; echo two >&4; head -n 1 <&3; head -n 1 <&4
exec 5<>/dev/tcp/allowed.test/7777; echo three >&5; head -n 1 <&5
exec 6<>/dev/tcp/other.test/7777; echo other >&6; head -n 1 <&6`
	for config, want := range map[string]string{"": "one two three other", "isolation.resources.net_connections = 2\n": "one two other"} {
		put(t, config, d.home, ".config/bawn/config.toml")
		r := d.run(t, d.insideArgs(t, allow("allowed.test:7777", "other.test:7777"), "bash", "-c", line)...)
		if got := strings.Join(strings.Fields(r.out), " "); got != want {
			t.Errorf("%q: %q, want %q\n%s", config, got, want, r.err)
		}
		if strings.Contains(r.err, "raise isolation.resources.net_connections") != (config != "") {
			t.Errorf("%q: %s", config, r.err)
		}
	}
}
