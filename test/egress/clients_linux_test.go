package egress_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trusting is a variable of the machine's: Node does not ask the system whom to
// trust, so that its users say it.
const trusting = "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"

// getters are ordinary clients that get URL.
var getters = map[string]string{
	"curl":          "curl -sS -m 30 URL",
	"curl HTTP/1.1": "curl -sS -m 30 --http1.1 URL",
	"wget":          "wget -T 9 -t 1 -q -O - URL",
	"python3":       "python3 -c 'import urllib.request as r; print(r.urlopen(\"URL\", timeout=9).read().decode())'",
	"node fetch":    "node -e 'fetch(\"URL\").then(r => r.text()).then(console.log, e => console.log(String(e), String(e.cause)))'",
	"node https":    "node -e 'require(\"https\").get(\"URL\", r => r.pipe(process.stdout)).on(\"error\", console.log)'",
	"go":            "$PROBE get URL",
	"java":          "java $JAVA -Xshare:auto -XX:TieredStopAtLevel=1 Get.java URL",
}

// TestClients runs them unsandboxed, as guests that may reach the host, as guests
// that may send it certain requests, and as guests that may do neither.
func TestClients(t *testing.T) {
	d := newAccount(t, "wget", "python3", "node", "java")
	d.env = append(d.env, trusting)
	source, err := os.ReadFile("testdata/Get.java")
	check(t, err)
	put(t, string(source), d.work, "Get.java")
	store := d.javaStore(t)
	names, open, closed := []string{}, []string{}, []string{}
	for name, line := range getters {
		names = append(names, name)
		open = append(open, strings.ReplaceAll(line, "URL", "https://allowed.test/open/x"))
		closed = append(closed, strings.ReplaceAll(line, "URL", "https://allowed.test/closed/x"))
	}
	guest := func(flags []string, java string) func(string) result {
		return func(script string) result { return d.inside(t, flags, "JAVA='"+java+"'; "+script) }
	}
	bare := func(script string) result { return d.sh(t, "JAVA='"+store+"'; "+script) }
	const want = "this is allowed.test, GET /open/x"
	wantAll := func(how string, lines []string, run func(string) result, want string, is bool) {
		t.Helper()
		for i, r := range d.lines(t, run, lines) {
			if strings.Contains(r.out, want) != is {
				t.Errorf("%s, %s, after %v: %q", names[i], how, r.took, r.out)
			}
		}
	}
	wantAll("bare", open, bare, want, true)
	wantAll("bare, closed", closed, bare, "GET /closed/x", true)
	wantAll("allowed", open, guest(allow("allowed.test"), store), want, true)
	m := d.now(t)
	opened := []string{"--http", "allowed.test GET /open/**"}
	wantAll("opened", open, guest(opened, ""), want, true)
	wantAll("opened, closed", closed, guest(opened, ""), "this is", false)
	wantAll("neither", open, guest(nil, store), "this is", false)
	d.nothingElse(t, m, attack{})
}

// javaStore makes a trust store with the authority of the servers outside, since Java does
// not use the system's store.
func (d *account) javaStore(t *testing.T) string {
	t.Helper()
	store := filepath.Join(d.work, "trust")
	r := d.run(t, "keytool", "-importcert", "-noprompt", "-alias", "outside", "-file", "/etc/ssl/certs/ca-certificates.crt", "-keystore", store, "-storepass", "changeit")
	if r.code != 0 {
		t.Fatalf("keytool: %s%s", r.out, r.err)
	}
	return "-Djavax.net.ssl.trustStore=" + store + " -Djavax.net.ssl.trustStorePassword=changeit"
}

// TestRaw carries what is neither HTTP nor TLS.
func TestRaw(t *testing.T) {
	d := newAccount(t, "python3")
	lines := []string{
		"$PROBE tcp allowed.test:7777 abc", "$PROBE tcp allowed.test:2525 'abc\\n'", "$PROBE many 20 5 allowed.test:5433",
		"$PROBE tcp ALLOWED.test.:7777 abc",
		"$PROBE tcp 93.184.215.99:7777 abc", "$PROBE tcp [" + publicV6 + "99]:7777 abc", "curl -sS -m 30 http://bücher.test/", "curl -sS -m 30 http://x.y.wild.test/",
		"python3 -m http.server -b 127.0.0.1 8099 >/dev/null 2>&1 & for i in $(seq 200); do page=$(curl -sS -m 30 http://localhost:8099/ 2>/dev/null) && break; sleep 0.1; done; echo \"$page\" | grep -o listing | head -1; kill $!",
	}
	want := []string{"abc", "220 hello\r\nabc", "20 of 20", "abc", "abc", "abc", "this is xn--bcher-kva.test", "this is x.y.wild.test", "listing"}
	flags := allow("allowed.test:7777,2525,5000-6000", "93.184.215.99:7777", "["+publicV6+"99]:7777", "xn--bcher-kva.test", "*.wild.test")
	for how, run := range map[string]func(string) result{
		"bare": func(script string) result { return d.sh(t, script) }, "guest": func(script string) result { return d.inside(t, flags, script) },
	} {
		for i, r := range d.lines(t, run, lines) {
			t.Logf("%s: %.60s: %v", how, lines[i], r.took)
			if !strings.Contains(r.out, want[i]) {
				t.Errorf("%s: %s says %q, want %q", how, lines[i], r.out, want[i])
			}
		}
	}
}
