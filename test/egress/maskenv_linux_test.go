package egress_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// dotenvParser is what programs do with the file, in a few lines: names, quotes, comments.
const dotenvParser = `python3 -c '
import re
for line in open(".env"):
    m = re.match(r"^\s*(?:export\s+)?([\w.]+)\s*=\s*(\"[^\"]*\"|[^\s#]*)", line)
    if m: print("parsed", m.group(1), m.group(2).strip("\""))
' `

// TestMaskEnv: with --mask-env the guest finds placeholders in the files that keep the
// workspace's secrets, in a file that programs still read, which it can neither change nor
// take away; a value that the vault has too is put in where that is bound, and nowhere else.
func TestMaskEnv(t *testing.T) {
	d := newAccount(t, "python3", "bwrap")
	const value, other = "sk_live_0123456789abcdef", "Zx81Zx81Zx81Zx81Zx81Zx81"
	text := "MODE=production\nexport API_TOKEN=\"" + value + "\" # live\nDB=postgres://app:" + other + "@db/app\nPORT=3000\n"
	put(t, text, d.work, ".env")
	put(t, "OTHER_SECRET="+other+"\n", d.work, "api", ".env.local")
	put(t, "DEEP_SECRET="+other+"\n", d.work, "my app (1)", "b", "c", "d", "e", ".env")
	d.vault(t, "tok", value, "--host api.test --bearer")
	const attack = "cat .env api/.env.local; grep -rs -e sk_live -e Zx81 . ; echo X=1 >> .env; rm -f .env; mv .env away; mv api/.env.local x; umount .env; ln .env hard; cat hard; cp .env copy; cat copy; mv api moved; cat moved/.env.local; mv moved api; python3 -c 'import os; print(open(\"/proc/self/root\" + os.getcwd() + \"/.env\").read())'; "
	const use = "T=$(sed -n 's/.*API_TOKEN=\"\\(.*\\)\".*/\\1/p' .env); curl -sS -m 30 -H \"Authorization: Bearer $T\" https://api.test/use; curl -sS -m 30 -H \"Authorization: Bearer $T\" https://other.test/elsewhere; "
	for _, provider := range []string{"native", "bwrap"} {
		flags := []string{"--provider", provider, "--mask-env", "--secret", "tok", "--http", "api.test * /**", "--http", "other.test * /**"}
		m := d.now(t)
		r := d.inside(t, flags, attack+use+dotenvParser)
		if strings.Contains(r.out, "sk_live") || strings.Contains(r.out, "Zx81") || strings.Contains(r.err, "sk_live") {
			t.Errorf("%s: the guest has read a secret:\n%s%s", provider, r.out, r.err)
		}
		for _, want := range []string{"parsed MODE production", "parsed API_TOKEN masked-by-bawn-", "parsed DB postgres://app:masked-by-bawn-", "parsed PORT 3000", "OTHER_SECRET=masked-by-bawn-"} {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: want %q in\n%s%s", provider, want, r.out, r.err)
			}
		}
		if got, err := os.ReadFile(filepath.Join(d.work, ".env")); err != nil || string(got) != text {
			t.Errorf("%s: the file is %q, %v", provider, got, err)
		}
		at := ""
		for _, e := range d.since(t, m) {
			if line := fmt.Sprint(e); strings.Contains(line, value) {
				at += line
			}
		}
		if !strings.Contains(at, "/use") || strings.Contains(at, "/elsewhere") {
			t.Errorf("%s: the value was put in at %q; want api.test alone", provider, at)
		}
		_ = os.Remove(filepath.Join(d.work, "copy"))
		if r = d.inside(t, []string{"--provider", provider}, "cat .env; echo '# more' > new && rm new"); !strings.Contains(r.out, value) { // the control
			t.Errorf("%s: control: without the flag it reads %q %q", provider, r.out, r.err)
		}
	}
}

// TestMaskEnvMissesNothing: a session is refused where a link would show the guest what is
// not masked. The control is a link to what is.
func TestMaskEnvMissesNothing(t *testing.T) {
	d := newAccount(t)
	put(t, "API_TOKEN=sk_live_0123456789abcdef\n", d.work, "values.txt")
	check(t, os.Symlink("values.txt", filepath.Join(d.work, ".env")))
	r := d.inside(t, []string{"--mask-env"}, "cat .env")
	if r.code == 0 || strings.Contains(r.out, "sk_live") || !strings.Contains(r.err, "values.txt") || !strings.Contains(r.err, "--mask-env=off") {
		t.Errorf("the guest reads %q, and is told %q", r.out, r.err)
	}
	check(t, os.Rename(filepath.Join(d.work, "values.txt"), filepath.Join(d.work, ".env.local")))
	check(t, os.Remove(filepath.Join(d.work, ".env")))
	check(t, os.Symlink(".env.local", filepath.Join(d.work, ".env")))
	if r = d.inside(t, []string{"--mask-env"}, "cat .env"); r.code != 0 || strings.Contains(r.out, "sk_live") || !strings.Contains(r.out, "masked-by-bawn-") {
		t.Errorf("control: the guest reads %q, and is told %q", r.out, r.err)
	}
}

// TestEnvIsNamedOnce: what the guest can read is said at the start, once until it changes,
// and mode strict masks it.
func TestEnvIsNamedOnce(t *testing.T) {
	d := newAccount(t)
	put(t, "API_TOKEN=sk_live_0123456789abcdef\n", d.work, ".env")
	const note = "the guest can read the secrets of .env:API_TOKEN"
	for i, want := range []bool{true, false} {
		if r := d.inside(t, nil, "true"); strings.Contains(r.err, note) != want || strings.Contains(r.err, "sk_live") {
			t.Errorf("start %d says %q; want the note: %t", i, r.err, want)
		}
	}
	put(t, "API_TOKEN=sk_live_0123456789abcdef\nMORE_KEY=sk_live_0123456789abcdef0\n", d.work, ".env")
	if r := d.inside(t, nil, "true"); !strings.Contains(r.err, ".env:MORE_KEY") {
		t.Errorf("after a change it says %q", r.err)
	}
	if r := d.inside(t, []string{"--mode", "strict"}, "cat .env"); strings.Contains(r.out, "sk_live") || !strings.Contains(r.out, "masked-by-bawn-") {
		t.Errorf("mode strict shows %q %q", r.out, r.err)
	}
	if r := d.inside(t, []string{"--mode", "strict", "--mask-env=off"}, "cat .env"); !strings.Contains(r.out, "sk_live") {
		t.Errorf("control: mode strict without it shows %q %q", r.out, r.err)
	}
	if r := d.inside(t, []string{"--mask-env", "--docker"}, "true"); r.code == 0 {
		t.Errorf("containers would read it: %q", r.err)
	}
}

// TestMaskedFileIsReplaced: a program of the host that writes a masked file anew, as editors
// do, does not show it to the guest, but for the moment until it is covered.
func TestMaskedFileIsReplaced(t *testing.T) {
	d := newAccount(t, "bwrap")
	const before, after = "sk_live_0123456789abcdef", "sk_live_fedcba9876543210"
	for _, provider := range []string{"native", "bwrap"} {
		put(t, "API_TOKEN="+before+"\n", d.work, ".env")
		_ = os.Remove(filepath.Join(d.work, "go"))
		_ = os.Remove(filepath.Join(d.work, "started"))
		out := make(chan result, 1)
		go func() {
			out <- d.inside(t, []string{"--provider", provider, "--mask-env"}, `cat .env; touch started; while [ ! -e go ]; do sleep 0.05; done
n=0; while grep -q sk_live .env 2>/dev/null && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.05; done; for i in 1 2 3 4 5 6 7 8 9 10; do cat .env; sleep 0.05; done; echo looked`)
		}()
		testenv.Until(t, "the guest", func() bool { return exists(filepath.Join(d.work, "started")) })
		check(t, os.Rename(put(t, "API_TOKEN="+after+"\n", d.work, "new"), filepath.Join(d.work, ".env")))
		put(t, "", d.work, "go")
		r := testenv.Receive(t, "the guest's end", out)
		if strings.Contains(r.out, "sk_live") || !strings.Contains(r.out, "masked-by-bawn-") || !strings.Contains(r.out, "looked") {
			t.Errorf("%s: the guest reads %q %q", provider, r.out, r.err)
		}
		if r = d.inside(t, nil, "cat .env"); !strings.Contains(r.out, after) { // the control
			t.Errorf("control: %q %q", r.out, r.err)
		}
	}
}
