package egress_test

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// vault keeps a value in encrypted files, and binds it to requests.
func (d *account) vault(t *testing.T, name, value string, bindings ...string) {
	t.Helper()
	identity := filepath.Join(d.home, "identity")
	if !exists(identity) {
		id, err := age.GenerateX25519Identity()
		check(t, err)
		put(t, id.String()+"\n", identity)
	}
	input := put(t, value+"\n", d.home, "input")
	bawn := d.bawn(t)
	lines := []string{fmt.Sprintf("'%s' secret set %s --store file --identity '%s' < '%s'", bawn, name, identity, input)}
	for _, b := range bindings {
		lines = append(lines, fmt.Sprintf("'%s' secret bind %s %s", bawn, name, b))
	}
	if r := d.sh(t, strings.Join(append(lines, "rm '"+input+"'"), " && ")); r.code != 0 {
		t.Fatalf("%q ends with %d: %s%s", lines, r.code, r.out, r.err)
	}
}

// TestSecrets binds a value to a header of one host. That host gets it; the
// guest, and everybody else, does not.
func TestSecrets(t *testing.T) {
	d := newAccount(t, "python3")
	value := "sk-" + rand.Text()
	d.vault(t, "model", value, "--host api.test --header x-api-key --env MODEL_KEY")
	flags := append(allow("allowed.test", "other.test"), "--secret", "model", "--http", "api.test * /**", "--http", "other.test * /**")
	lines := map[string]string{
		"used":         "curl -sS -m 30 -H \"x-api-key: $MODEL_KEY\" https://api.test/use",
		"used h1":      "curl -sS -m 30 --http1.1 -H \"x-api-key: $MODEL_KEY\" https://api.test/use1",
		"echoed":       "curl -sS -i -m 30 -H \"x-api-key: $MODEL_KEY\" https://api.test/echo",
		"other host":   "curl -sS -m 30 -H \"x-api-key: $MODEL_KEY\" https://other.test/elsewhere",
		"plain":        "curl -sS -m 30 -H \"x-api-key: $MODEL_KEY\" http://api.test/plain",
		"spliced host": "curl -sS -m 30 -H \"x-api-key: $MODEL_KEY\" http://allowed.test/spliced",
		"other header": "curl -sS -m 30 -H \"x-other: $MODEL_KEY\" https://api.test/header",
		"body":         "curl -sS -m 30 -d \"$MODEL_KEY\" https://api.test/echo",
		"query":        "curl -sS -m 30 \"https://api.test/query?k=$MODEL_KEY\"",
		"path":         "curl -sS -m 30 \"https://api.test/$MODEL_KEY\"",
		"fronted":      "curl -sS -m 30 -H \"x-api-key: $MODEL_KEY\" -H 'Host: other.test' https://api.test/fronted",
		"environment":  "env | grep ^MODEL_KEY=",
		"files":        "grep -rlsa -e " + value[3:15] + " ~ /tmp /run /dev/shm /etc /var/tmp 2>/dev/null",
		"control":      "python3 -c '" + memorySearch + "' \"$MODEL_KEY\" ''",
		"memory":       "python3 -c '" + memorySearch + "' " + value[3:9] + " " + value[9:],
	}
	names, script := []string{}, []string{}
	for name, line := range lines {
		names, script = append(names, name), append(script, line)
	}
	m := d.now(t)
	results := d.lines(t, func(s string) result {
		r := d.inside(t, flags, s)
		if strings.Contains(r.out+r.err, value) {
			t.Error("the guest or its human has seen the value")
		}
		return r
	}, script)
	got := map[string]string{}
	for i, name := range names {
		got[name] = results[i].out
		t.Logf("%s: %.300q", name, results[i].out)
	}
	if !strings.Contains(got["environment"], "MODEL_KEY=sk-") {
		t.Error("the guest has no placeholder")
	}
	if strings.Contains(got["files"], "/") && strings.TrimSpace(got["files"]) != "" {
		t.Errorf("the value is in %s", got["files"])
	}
	if !strings.Contains(got["memory"], "searched") || strings.Contains(got["memory"], "found") {
		t.Errorf("the search of memory says %q", got["memory"])
	}
	if !strings.Contains(got["control"], "found") {
		t.Errorf("the search finds not even the placeholder: %q", got["control"])
	}
	_, placeholder, _ := strings.Cut(got["environment"], "MODEL_KEY=")
	d.onlyBound(t, m, value, strings.Fields(placeholder + " none")[0])
}

// onlyBound wants the value at its place alone, and the placeholder nowhere.
func (d *account) onlyBound(t *testing.T, m mark, value, placeholder string) {
	t.Helper()
	used := 0
	for _, e := range d.since(t, m) {
		line := fmt.Sprint(e)
		if strings.Contains(line, placeholder) {
			t.Errorf("the placeholder is outside: %s", line)
		}
		if !strings.Contains(line, value) {
			continue
		}
		used++
		if e.Server != "https" || e.Host != "api.test" || !strings.Contains(e.Header, "X-Api-Key:["+value+"]") || strings.Count(line, value) != 1 {
			t.Errorf("the value is outside where it is not bound: %s", line)
		}
	}
	if used < 3 {
		t.Errorf("the value was put in %d times, want 3", used)
	}
}

// memorySearch looks for its joined arguments in what it may read of every
// other process: its environment, its arguments and its memory.
const memorySearch = `
import glob, os, sys
want = (sys.argv[1] + sys.argv[2]).encode()
n = 0
for maps in glob.glob("/proc/[0-9]*/maps"):
    pid = maps.split("/")[2]
    if pid == str(os.getpid()):
        continue
    for name in "environ", "cmdline":
        try:
            if want in open("/proc/" + pid + "/" + name, "rb").read():
                print("found in", name, "of", pid)
        except OSError:
            pass
    try:
        mem = open("/proc/" + pid + "/mem", "rb", 0)
        for line in open(maps):
            f = line.split()
            if "r" not in f[1] or "[v" in line:
                continue
            a, b = (int(x, 16) for x in f[0].split("-"))
            mem.seek(a)
            n += 1
            try:
                if want in mem.read(b - a):
                    print("found in", pid, line)
            except (OSError, OverflowError):
                pass
    except OSError:
        pass
print("searched", n)
`
