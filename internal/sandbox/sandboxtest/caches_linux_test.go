package sandboxtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPrivateCaches: where a private cache lies is known to its guest, which finds
// there what it has left before, and leads no program of the user there.
func TestPrivateCaches(t *testing.T) {
	for _, name := range []string{"native", "bwrap", "docker"} {
		t.Run(name, func(t *testing.T) {
			if name != "docker" { // which only root has here
				testenv.ByUser(t)
			}
			c := contenderNamed(t, name)
			c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) { c.privateCache(t, f) })
		})
	}
}

func (c contender) privateCache(t *testing.T, f *sandboxtest.Fixtures) {
	cache := filepath.Join(f.Home, ".npm")
	host := func(argv ...string) sandboxtest.Result { return sandboxtest.NoSandbox(t, f, argv...) }
	guest := func(text string) string {
		r := c.run()(t, f, "sh", "-c", text, "sh", cache)
		if r.Code != 0 {
			t.Fatalf("exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		return strings.TrimSpace(r.Stdout)
	}
	if r := host("rm", "-f", cache); r.Code != 0 { // see Fixtures.withoutCaches
		t.Fatal(r.Stderr)
	}
	if r := host("mkdir", "-p", cache); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	source := guest(`echo planted >"$1/x" && while read -r a b c from at rest; do if [ "$at" = "$1" ]; then echo "$from"; fi; done </proc/self/mountinfo`)
	seals, err := filepath.Glob(filepath.Join(f.Home, ".cache/bawn/private/*/*.npm"))
	if err != nil || len(seals) != 1 || !strings.HasSuffix(sealed.Inside(seals[0]), source) { // the host may have mounts of its own on the way
		t.Fatalf("the guest says %q, and there is %q, %v", source, seals, err)
	}
	source = sealed.Inside(seals[0])
	if got := guest(`cat "$1/x"`); got != "planted" {
		t.Errorf("the next session finds %q", got)
	}
	if got := guest(`ln -s "` + source + `" led 2>/dev/null; ls -d led 2>/dev/null || echo none`); got != "none" {
		t.Errorf("the guest has made a link there: %q", got)
	}
	link := filepath.Join(f.Home, "led") // as if it had
	if r := host("ln", "-s", source, link); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	for _, p := range []string{source + "/x", link + "/x"} {
		if r := host("cat", p); f.UID != 0 && (r.Code == 0 || !strings.Contains(r.Stderr, "ermission denied")) {
			t.Errorf("the user's cat %s: %d, %q, %s", p, r.Code, r.Stdout, r.Stderr)
		}
	}
	if err := os.Chmod(filepath.Dir(source), 0o700); err != nil { // control
		t.Fatal(err)
	}
	if r := host("cat", link+"/x"); r.Stdout != "planted\n" {
		t.Errorf("without the seal: %d, %q, %s", r.Code, r.Stdout, r.Stderr)
	}
}
