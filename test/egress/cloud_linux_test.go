package egress_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cloud is a host that takes requests that are signed with a key, as AWS does.
const cloud = "sqs.eu-central-1.amazonaws.com"

var signedLine = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/((\d{8})/([^/]+)/([^/]+)/aws4_request), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$`)

// serveCloud verifies a signature with the key that it finds in a file: id,
// secret and token, a line each. It is written by AWS's documentation and
// shares nothing with what is tested. It answers with what a hostile one may
// know of the request.
func serveCloud(file string, w http.ResponseWriter, r *http.Request) {
	text, err := os.ReadFile(file)
	key := append(strings.Split(string(text), "\n"), "", "", "")
	body, bodyErr := io.ReadAll(r.Body)
	m := signedLine.FindStringSubmatch(r.Header.Get("Authorization"))
	if err != nil || bodyErr != nil || m == nil {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	headers := ""
	for name := range strings.SplitSeq(m[6], ";") {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		headers += name + ":" + strings.TrimSpace(value) + "\n"
	}
	sum := r.Header.Get("X-Amz-Content-Sha256")
	if sum == "" {
		sum = sha256Of(string(body))
	}
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), r.URL.Query().Encode(), headers, m[6], sum}, "\n")
	mac := []byte("AWS4" + key[1])
	for _, step := range []string{m[3], m[4], m[5], "aws4_request", strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), m[2], sha256Of(canonical)}, "\n")} {
		h := hmac.New(sha256.New, mac)
		h.Write([]byte(step))
		mac = h.Sum(nil)
	}
	signed := slices.Contains(strings.Split(m[6], ";"), "host") && hex.EncodeToString(mac) == m[7]
	if m[1] != key[0] || !signed || r.Header.Get("X-Amz-Security-Token") != key[2] {
		http.Error(w, "SignatureDoesNotMatch "+m[1], http.StatusForbidden)
		return
	}
	fmt.Fprintf(w, "the cloud knows %s %s %s, body %q\n", m[1], m[7], r.Header.Get("X-Amz-Security-Token"), body)
}

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestAWS has curl sign requests with what it finds in ~/.aws/credentials: the
// cloud, which verifies them with the real key, takes them, and neither the
// guest nor the log has seen the key.
func TestAWS(t *testing.T) {
	d := newAccount(t)
	id, secret, token := "AKIA"+rand.Text()[:16], (rand.Text() + rand.Text())[:40], "IQoJ"+rand.Text()+"/"+rand.Text()
	put(t, strings.Join([]string{id, secret, token}, "\n"), d.lab, "cloud")
	d.vault(t, "unused", "never")
	mine := put(t, fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\nregion = eu-central-1\n[other]\naws_access_key_id = AKIAOTHEROTHEROTHER2\naws_secret_access_key = %s\n", id, secret, token, (rand.Text() + rand.Text())[:40]), d.home, ".aws/credentials")
	bawn := d.bawn(t)
	if r := d.sh(t, fmt.Sprintf("'%s' secret set cloud --aws --store file --identity '%s' <<'END'\n%s:%s:%s\nEND\n'%[1]s' secret bind cloud --aws=eu-central-1/sqs", bawn, filepath.Join(d.home, "identity"), id, secret, token)); r.code != 0 {
		t.Fatalf("%s%s", r.out, r.err)
	}
	flags := append(allow("other.test"), "--secret", "cloud", "--http", cloud+" GET,POST /**", "--http", "other.test * /**")
	key := "for n in aws_access_key_id aws_secret_access_key aws_session_token; do eval $n=$(sed -n \"s/^$n = //p\" ~/.aws/credentials); done\n" +
		"call() { curl -sS -i -m 30 --aws-sigv4 aws:amz:eu-central-1:sqs --user \"$aws_access_key_id:$aws_secret_access_key\" -H \"X-Amz-Security-Token: $aws_session_token\" \"$@\"; }\n"
	to := "https://" + cloud
	lines := map[string]string{
		"get": "call " + to + "/", "get h1": "call --http1.1 '" + to + "/queue?Action=ListQueues&Version=2012'", "post": "call -d Action=SendMessage " + to + "/queue",
		"long": "head -c 3000000 /dev/zero | tr '\\0' x > long; call --data-binary @long " + to + "/ | head -c 2000",
		"file": "cat ~/.aws/credentials; stat -c %a ~/.aws/credentials; echo x >> ~/.aws/credentials",

		"another region": strings.ReplaceAll("call "+to+"/", "call", "curl -sS -m 30 --aws-sigv4 aws:amz:us-east-1:sqs --user \"$aws_access_key_id:$aws_secret_access_key\" -H \"X-Amz-Security-Token: $aws_session_token\""),
		"a wrong secret": "aws_secret_access_key=x$aws_secret_access_key; call " + to + "/",
		"changed":        "call -H 'X-Amz-Target: a' -H 'Connection: X-Amz-Date' " + to + "/",
		"no token":       "curl -sS -m 30 --aws-sigv4 aws:amz:eu-central-1:sqs --user \"$aws_access_key_id:$aws_secret_access_key\" " + to + "/",
		"presigned":      "curl -sS -m 30 \"" + to + "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=$aws_access_key_id%2F20260101%2Feu-central-1%2Fsqs%2Faws4_request&X-Amz-Signature=00\"",
		"other host":     "call https://other.test/", "plain": "call http://" + cloud + "/", "body": "call -d \"$aws_secret_access_key\" " + to + "/",
	}
	want := map[string]string{
		"get": "the cloud knows", "get h1": "the cloud knows", "post": `body "Action=SendMessage"`, "long": "the cloud knows", "file": "region = eu-central-1\n400\n",
		"another region": "for the region", "a wrong secret": "was not made with it", "changed": "which the request does not have", "no token": "session token", "presigned": "presigned",
		"other host": "may not be sent to", "plain": "may not be sent without TLS", "body": "stands in a body",
	}
	names, script := []string{}, []string{}
	for name, line := range lines {
		names, script = append(names, name), append(script, key+line)
	}
	m := d.now(t)
	results := d.lines(t, func(s string) result { return d.inside(t, flags, s) }, script)
	for i, name := range names {
		r := results[i]
		if !strings.Contains(r.out, want[name]) {
			t.Errorf("%s: %q, %q; want %q", name, r.out, r.err, want[name])
		}
		if all := r.out + r.err; strings.Contains(all, id) || strings.Contains(all, secret) || strings.Contains(all, token) || strings.Contains(all, "OTHER") {
			t.Errorf("%s: the guest or its human has seen a key: %s", name, all)
		}
		if want[name] == "the cloud knows" && strings.Contains(r.out, "bawn refused") {
			t.Errorf("%s: %q", name, r.out)
		}
	}
	used := 0
	for _, e := range d.since(t, m) {
		line := fmt.Sprint(e)
		if strings.Contains(line, secret) || strings.Contains(line, id) && (e.Server != "https" || e.Host != cloud) {
			t.Errorf("the key is outside where it is not bound: %s", line)
		}
		if strings.Contains(line, "Credential="+id+"/") {
			used++
		}
	}
	if used != 4 {
		t.Errorf("%d requests were signed with the key, want 4", used)
	}
	log := d.run(t, bawn, "audit", "query", "--json", "--limit", "0").out
	if strings.Contains(log, id) || strings.Contains(log, secret) || strings.Contains(log, token) || !strings.Contains(log, `"lent":"cloud"`) {
		t.Errorf("the log says %.3000s", log)
	}
	// Control: the same line outside, with the key and with a placeholder.
	for user, status := range map[string]string{id + ":" + secret: "200", "AKIASTANDSTANDSTAND2:" + secret: "403"} {
		r := d.sh(t, fmt.Sprintf("curl -sS -m 30 -o /dev/null -w '%%{http_code}' --aws-sigv4 aws:amz:eu-central-1:sqs --user '%s' -H 'X-Amz-Security-Token: %s' %s/", user, token, to))
		if r.out != status {
			t.Errorf("control: %q %s, want %s", r.out, r.err, status)
		}
	}
	if text, err := os.ReadFile(mine); err != nil || !strings.Contains(string(text), secret) {
		t.Errorf("the human's own file holds %q, %v", text, err)
	}
	check(t, os.Remove(mine))
	if r := d.inside(t, flags, `cat "$AWS_SHARED_CREDENTIALS_FILE"`); !strings.HasPrefix(r.out, "[default]\naws_access_key_id = AKIA") || strings.Contains(r.out, id) {
		t.Errorf("without a file of the human's: %q %s", r.out, r.err)
	}
}
