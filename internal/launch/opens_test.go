package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestOpens: a yes to a push opens the connection that its words name, to the remote
// of the human's repository, and no other.
func TestOpens(t *testing.T) {
	dir := t.TempDir()
	config := "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = https://git.test/team/app.git\n[remote \"ssh\"]\n\turl = git@git.test:team/app.git\n"
	for name, text := range map[string]string{"config": config, "HEAD": "ref: refs/heads/main\n"} {
		if err := os.MkdirAll(filepath.Join(dir, ".git/objects"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".git/refs"), 0o755); err != nil {
		t.Fatal(err)
	}
	opens := Opens(dir)
	const app = "https://git.test/team/app.git push "
	for line, want := range map[string]string{
		"git push -u origin fix":                              app + "refs/heads/fix|" + app + "refs/tags/fix",
		"make && git push origin HEAD:refs/heads/fix":         app + "refs/heads/fix",
		"git push https://git.test/other/ main:dev":           "https://git.test/other.git push refs/heads/dev|https://git.test/other.git push refs/tags/dev",
		"git push https://git.test/other.git main:dev":        "https://git.test/other.git push refs/heads/dev|https://git.test/other.git push refs/tags/dev",
		"git push origin a refs/tags/v1":                      app + "refs/heads/a refs/tags/v1|" + app + "refs/tags/a refs/tags/v1",
		"git push origin":                                     "", // which refs, the words don't say
		"git push":                                            "",
		"git push --force origin fix":                         "",
		"git push origin +fix":                                "",
		"git push origin :fix":                                "",
		"git push --mirror origin fix":                        "",
		"git push origin HEAD":                                "",
		"git push ssh fix":                                    "ssh://git.test/team/app.git push refs/heads/fix|ssh://git.test/team/app.git push refs/tags/fix",
		"git push git@git.test:/srv/app fix":                  "",
		"git push nothing fix":                                "",
		"git push https://user:word@git.test/other.git fix":   "",
		"git push origin $BRANCH":                             "",
		"git -c remote.origin.url=https://evil push origin x": "",
		"for i in 1 2; do git push origin fix; done":          "",
		"ls": "",
	} {
		var got []string
		for _, a := range opens(bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: dir}) {
			got = append(got, a.Resource+" "+strings.Join(a.Args, " "))
		}
		if want != "" { // at a host that is not looked into
			host, port := "git.test", "443"
			if strings.HasPrefix(want, "ssh") {
				port = "22"
			}
			want += "|" + host + ":" + port + " "
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%s\ngot %q, want %q", line, text, want)
		}
	}
}
