package tree_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// attempt is a line that says yes or no.
func attempt(line string) string {
	return "if " + line + " >/dev/null 2>&1; then echo yes; else echo no; fi"
}

// host starts a server on this machine's loopback, and returns its port.
var ids = regexp.MustCompile(`\b[a-z2-7]{26}\b`)

func host(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	check(t, err)
	return at.Port()
}

// TestMoreIsNotHad: whatever a guest asks for that its session has not, it does
// not have; the human who asks for the same has it.
func TestMoreIsNotHad(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	port := host(t)
	none := []string{"--net", "none"}
	id := filepath.Join(r.Home, ".ssh/id")
	get := strings.Join(r.Guest("get"), " ")
	for what, tt := range map[string]struct {
		flags []string
		line  string
	}{
		"a place beside the workspace": {[]string{"--rw", r.other}, attempt("touch " + r.other + "/made")},
		"as one word":                  {[]string{"--rw=" + r.other}, attempt("touch " + r.other + "/made")},
		"by dots":                      {[]string{"--rw", "../../other"}, attempt("touch " + r.other + "/made")},
		"the home":                     {[]string{"--rw", r.Home + "/src"}, attempt("touch " + r.Home + "/src/made")},
		"credentials":                  {[]string{"--open", "ssh"}, attempt("grep -q PRIVATE " + id)},
		"credentials by their path":    {[]string{"--open", r.Home + "/.ssh"}, attempt("grep -q PRIVATE " + id)},
		"credentials to write":         {[]string{"--rw", r.Home + "/.ssh"}, attempt("grep -q PRIVATE " + id)},
		"the host's network":           {[]string{"--net", "full"}, get + " http://127.0.0.1:" + port},
		"a service of the host":        {[]string{"--host-port", port}, get + " http://host.bawn.internal:" + port},
		"the weaker provider":          {[]string{"--net", "none", "--provider", "landlock"}, attempt("! grep -qx bawn /proc/1/comm")},
		"what is protected":            {[]string{"--profile", "strict", "--rw", r.Work + "/.git/hooks"}, attempt("touch " + r.Work + "/.git/hooks/x")},
		"a variable of the host":       {[]string{"--env", "HOSTS_OWN"}, attempt("test -n \"$HOSTS_OWN\"")},
		"a device":                     {[]string{"--device", "fuse"}, attempt("test -e /dev/fuse")},
	} {
		t.Run(what, func(t *testing.T) {
			flags := tt.flags
			if what != "the host's network" && what != "a service of the host" {
				flags = append([]string{"--net", "none"}, flags...)
			}
			check(t, os.MkdirAll(filepath.Join(r.Work, ".git/hooks"), 0o755))
			switch _, err := os.Stat("/dev/fuse"); {
			case what == "a device" && err != nil: // then there is nothing to be had
			default:
				said(t, "control: the human", r.sh(t, flags, tt.line), true)
			}
			said(t, "a guest", r.child(t, none, flags, tt.line), false)
			said(t, "a guest of a guest", r.Run(t, r.bawn(none, r.bawn(nil, r.bawn(flags, "/bin/sh", "-c", tt.line)...)...)...), false)
		})
	}
}

// TestParentsOwnIsHad: what the parent has, a child has that asks for it, and
// one that does not ask has not.
func TestParentsOwnIsHad(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	port := host(t)
	has := []string{"--rw", r.other, "--open", "ssh", "--host-port", port}
	for what, tt := range map[string]struct {
		flags []string
		line  string
	}{
		"a place":     {[]string{"--rw", r.other}, attempt("touch " + r.other + "/made")},
		"credentials": {[]string{"--open", "ssh"}, attempt("grep -q PRIVATE " + r.Home + "/.ssh/id")},
		"a service":   {[]string{"--host-port", port}, strings.Join(r.Guest("get"), " ") + " http://host.bawn.internal:" + port},
	} {
		said(t, what+", asked for", r.child(t, has, tt.flags, tt.line), true)
		said(t, what+", not asked for", r.child(t, has, nil, tt.line), false)
	}
}

// TestLess: a child that asks for less than its parent has gets less.
func TestLess(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	none := []string{"--net", "none"}
	write := attempt("touch " + r.Work + "/made")
	said(t, "control", r.child(t, none, nil, write), true)
	said(t, "a workspace to read", r.child(t, none, []string{"--profile", "readonly"}, write), false)
	said(t, "by --ro", r.child(t, none, []string{"--ro", r.Work}, write), false)
	said(t, "by --deny", r.child(t, none, []string{"--deny", r.Work + "/made"}, write), false)
	said(t, "below that", r.Run(t, r.bawn(none, r.bawn([]string{"--ro", r.Work}, r.bawn([]string{"--rw", r.Work}, "/bin/sh", "-c", write)...)...)...), false)
	if got := r.child(t, none, []string{"--timeout", "1s"}, "sleep 30"); got.Code != 124 {
		t.Errorf("the time of a child: %+v", got)
	}
}

// TestHomeOfTheGuest: what is hidden lies below the human's home, wherever a
// guest says that its own is.
func TestHomeOfTheGuest(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	id := filepath.Join(r.Home, ".ssh/id")
	said(t, "control", r.sh(t, []string{"--net", "none", "--open", "ssh"}, attempt("cat "+id)), true)
	for _, home := range []string{"/nowhere", "", r.Work, "/"} {
		line := fmt.Sprintf("HOME=%s %s run -- sh -c '%s'", home, filepath.Join(r.Bin, "bawn"), attempt("cat "+id))
		said(t, "HOME="+home, r.sh(t, []string{"--net", "none"}, line), false)
	}
}

// TestNamesAreNotTold: what a guest does not see is refused in the same words
// whether it is there or not.
func TestNamesAreNotTold(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	ssh := filepath.Join(r.Home, ".ssh")
	check(t, os.Symlink(ssh+"/id", r.Work+"/to-a"))
	check(t, os.Symlink(ssh+"/no", r.Work+"/to-b"))
	r.sh(t, []string{"--net", "none"}, filepath.Join(r.Bin, "bawn")+" run -- true") // what is said once to a user is said
	check(t, os.Symlink("/a/place/of/the/host", ssh+"/link"))
	bawn := filepath.Join(r.Bin, "bawn") + " run "
	for what, lines := range map[string][2]string{
		"--cwd":              {"--cwd " + ssh + "/id -- true", "--cwd " + ssh + "/no -- true"},
		"--rw":               {"--rw " + ssh + "/id -- true", "--rw " + ssh + "/no -- true"},
		"--ro":               {"--ro " + ssh + "/id -- true", "--ro " + ssh + "/no -- true"},
		"--open":             {"--open " + ssh + "/id -- true", "--open " + ssh + "/no -- true"},
		"--deny":             {"--deny " + ssh + "/id -- true", "--deny " + ssh + "/no -- true"},
		"a program":          {"-- " + ssh + "/id", "-- " + ssh + "/no"},
		"links":              {"--rw to-a -- true", "--rw to-b -- true"},
		"a link to cwd":      {"--cwd to-a -- true", "--cwd to-b -- true"},
		"where a link is to": {"--rw " + ssh + "/link -- true", "--rw " + ssh + "/none -- true"},
	} {
		plain := func(text string) string {
			return strings.NewReplacer("/none", "/X", "/id", "/X", "/no", "/X", "to-a", "X", "to-b", "X", "/link", "/X").Replace(text)
		}
		var got [2]result
		for i, line := range lines {
			got[i] = r.sh(t, []string{"--net", "none"}, "export BAWN_SESSION=x; "+bawn+line)
			got[i].Err = ids.ReplaceAllString(plain(got[i].Err), "ID")
			if strings.Contains(got[i].Err, "/a/place") {
				t.Errorf("%s: it is told where a link leads: %s", what, got[i].Err)
			}
		}
		if got[0] != got[1] {
			t.Errorf("%s: %+v\nbut %+v", what, got[0], got[1])
		}
	}
}
