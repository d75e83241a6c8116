package secrets

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

const placeholder = "PLACEHOLDER-aB3xYz0123456789"

func bound(host string, place bawn.Place, name, file, format string) bawn.Binding {
	return bawn.Binding{Secret: "key", Host: host, Place: place, Name: name, File: file, Format: format, Placeholder: placeholder}
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// mask writes the real file, if any, and returns its mask.
func mask(t *testing.T, real string, bs ...bawn.Binding) (string, []string) {
	t.Helper()
	home := t.TempDir()
	if real != "" {
		file := expand(bs[0].File, home)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(real), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	masks, _, notes, err := Masks(bs, home)
	if err != nil || len(masks) != 1 {
		t.Fatalf("%v, %v", masks, err)
	}
	return string(masks[0].Content), notes
}

// TestMasks: real files with credentials, of which one is bound. What the mask
// keeps, and that no value of the real file is in it ("LEAK" is in each).
func TestMasks(t *testing.T) {
	npmrc := bound("npm.example.com", bawn.Bearer, "", "~/.npmrc", "npmrc")
	netrc := bound("git.example.com", bawn.Basic, "", "~/.netrc", "netrc")
	git := bound("git.example.com", bawn.Basic, "", "~/.git-credentials", "git-credentials")
	gh := bound("api.github.com", bawn.Bearer, "", "~/.config/gh/hosts.yml", "gh")
	kube := bound("kube.example.com", bawn.Bearer, "", "~/.kube/config", "kubeconfig")
	docker := bound("hub.example.com", bawn.Basic, "", "~/.docker/config.json", "docker")
	pip := bound("pip.example.com", bawn.Basic, "", "~/.config/pip/pip.conf", "pip")
	for _, tt := range []struct {
		name, real string
		b          bawn.Binding
		want       string
	}{
		{"npmrc", "; _authToken=LEAK0\n# once it was LEAK9\nfund=false\n@my:registry=https://npm.example.com/\n//npm.example.com/:_authToken=LEAK1\n//other.example.com/:_authToken=LEAK2\n_auth=LEAK3\nproxy=http://u:LEAK4@p.example.com\n\"//npm.example.com/x/:_authToken\" = \"LEAK5\"\nhttps-proxy=LEAKtoken\\\n//npm.example.com/:username=LEAK6\ncafile=/etc/ca.pem\nkey=LEAK7\n", npmrc,
			"fund=false\n@my:registry=https://npm.example.com/\n//npm.example.com/:_authToken=" + placeholder + "\n//npm.example.com/x/:_authToken=" + placeholder + "\nhttps-proxy=LEAKtoken\\\ncafile=/etc/ca.pem\n"},
		{"npmrc fresh", "", npmrc, "//npm.example.com/:_authToken=" + placeholder + "\n"},
		{"npmrc pattern", "", bound("*.npm.example.com", bawn.Bearer, "", "~/.npmrc", "npmrc"), "//registry.npm.example.com/:_authToken=" + placeholder + "\n"},
		{"npmrc basic", "//npm.example.com/:username=me\n//npm.example.com/:_password=" + base64Of("LEAK") + "\n", bound("npm.example.com", bawn.Basic, "", "~/.npmrc", "npmrc"),
			"//npm.example.com/:username=me\n//npm.example.com/:_password=" + base64Of(placeholder) + "\n"},
		{"netrc", "machine git.example.com login me password LEAK1 # LEAK2\ndefault login anonymous password LEAK3\nmachine other login a password LEAK4\nmacdef init\nLEAK5\n\n", netrc, "machine git.example.com login me password " + placeholder + "\n"},
		{"netrc of quotes", "machine git.example.com login me password \"LEAK 1\"\n", netrc, "machine git.example.com login token password " + placeholder + "\n"},
		{"netrc of odd words", "machine git.example.com login me pass LEAK\n", netrc, "machine git.example.com login token password " + placeholder + "\n"},
		{"git", "https://me:LEAK1@git.example.com\nhttps://you:LEAK2@other.example.com\nhttp://me:LEAK3@git.example.com\n:::LEAK4\n", git, "https://me:" + placeholder + "@git.example.com\n"},
		{"gh", "github.com:\n    user: me\n    oauth_token: LEAK1\n    git_protocol: https\n    users:\n        me:\n            oauth_token: LEAK2\n        you:\n            oauth_token: LEAK3\nghe.example.com:\n    oauth_token: LEAK4\n", gh,
			"github.com:\n    user: me\n    oauth_token: " + placeholder + "\n    git_protocol: https\n    users:\n        me:\n            oauth_token: " + placeholder + "\n"},
		{"gh that is no YAML", "github.com: [LEAK\n", gh, "github.com:\n    oauth_token: " + placeholder + "\n"},
		{"pip", "[global]\nindex-url = https://me:LEAK1@pip.example.com/simple\nextra-index-url =\n    https://x:LEAK2@other.example.com/simple\n    https://plain.example.com/simple\n# LEAK3\ntimeout = 9\n", pip,
			"[global]\nindex-url = https://me:" + placeholder + "@pip.example.com/simple\nextra-index-url =\n    https://other.example.com/simple\n    https://plain.example.com/simple\ntimeout = 9\n"},
		{"raw", "token=LEAK\nkeep=1\n", bound("x.example.com", bawn.Bearer, "", "~/.x", "raw:token={}\n"), "token=" + placeholder + "\n"},
		{"docker", `{"auths":{"hub.example.com":{"auth":"` + base64Of("me:LEAK1") + `","identitytoken":"LEAK2"},"other.example.com":{"auth":"LEAK3"}},"credsStore":"LEAK4","HttpHeaders":{"X":"LEAK5"},"detachKeys":"ctrl-a"}`, docker,
			"{\n\t\"auths\": {\n\t\t\"hub.example.com\": {\n\t\t\t\"auth\": \"" + base64Of("me:"+placeholder) + "\"\n\t\t}\n\t},\n\t\"detachKeys\": \"ctrl-a\"\n}\n"},
		{"kubeconfig", `
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: c1, cluster: {server: "https://kube.example.com:6443", certificate-authority-data: Q0E=, proxy-url: "http://u:LEAK0@p"}}
- {name: c2, cluster: {server: "https://other.example.com"}}
contexts:
- {name: one, context: {cluster: c1, user: me, namespace: dev}}
- {name: two, context: {cluster: c2, user: you}}
users:
- {name: me, user: {token: LEAK1, client-key-data: LEAK2}}
- {name: you, user: {token: LEAK3, exec: {command: LEAK4}}}
- {name: he, user: {username: he, password: LEAK5}}
`, kube, `apiVersion: v1
kind: Config
clusters:
    - name: c1
      cluster:
        server: https://kube.example.com:6443
        certificate-authority-data: Q0E=
    - name: c2
      cluster:
        server: https://other.example.com
contexts:
    - name: one
      context:
        cluster: c1
        user: me
        namespace: dev
    - name: two
      context:
        cluster: c2
        user: you
users:
    - name: me
      user:
        token: ` + placeholder + `
    - name: you
      user: {}
    - name: he
      user: {}
current-context: one
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, notes := mask(t, tt.real, tt.b)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%q", diff, notes)
			}
			if strings.Contains(strings.ReplaceAll(got, "LEAKtoken", ""), "LEAK") || strings.Contains(got, base64Of("LEAK")) {
				t.Errorf("a value of the real file is left:\n%s", got)
			}
			if strings.Contains(tt.real, "LEAK") && len(notes) == 0 && !strings.Contains(tt.name, "basic") && tt.b.Format != "raw:token={}\n" {
				t.Error("no note says that something was left out")
			}
		})
	}
}

// TestMaskSecondWall gives a file with a credential where nobody expects one.
func TestMaskSecondWall(t *testing.T) {
	b := bound("npm.example.com", bawn.Bearer, "", "~/.npmrc", "npmrc")
	got, notes := mask(t, "prefix=/opt\nmotto=ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", b)
	if strings.Contains(got, "ghp_") || strings.Contains(got, "prefix") || len(notes) != 1 || !strings.Contains(notes[0], "settings are not kept") {
		t.Errorf("%q, %q", got, notes)
	}
	if got, _ := mask(t, "prefix=/opt\nmotto=hello\n", b); !strings.Contains(got, "motto=hello") {
		t.Errorf("control: %q", got)
	}
}

func TestMasksRefuse(t *testing.T) {
	b := bound("npm.example.com", bawn.Bearer, "", "~/.npmrc", "npmrc")
	other := b
	other.Format, other.Place = "netrc", bawn.Basic
	none := b
	none.Placeholder = ""
	aws := b
	aws.Format = "aws"
	pattern := bound("*.example.com", bawn.Basic, "", "~/.netrc", "netrc")
	env, env2 := api, api
	env.Placeholder, env2.Placeholder = "one-placeholder", "other-placeholder"
	for name, bs := range map[string][]bawn.Binding{
		"two formats": {b, other}, "no placeholder": {none}, "zero": {{}}, "aws": {aws}, "pattern": {pattern}, "one variable twice": {env, env2},
	} {
		if masks, _, _, err := Masks(bs, t.TempDir()); err == nil {
			t.Errorf("%s: %v", name, masks)
		}
	}
	if _, _, _, err := Masks([]bawn.Binding{b}, ""); err == nil {
		t.Error("no home directory, no error")
	}
	masks, vars, notes, err := Masks([]bawn.Binding{b, env}, t.TempDir())
	if err != nil || len(masks) != 1 || masks[0].Mode != 0o400 || len(vars) != 1 || vars[0] != "EXAMPLE_KEY=one-placeholder" || !strings.Contains(strings.Join(notes, ""), "environment of every process") {
		t.Errorf("control: %v %q %q %v", masks, vars, notes, err)
	}
}

// TestClientsBelieveMasks has the real programs read what we write.
func TestClientsBelieveMasks(t *testing.T) {
	place := func(t *testing.T, b bawn.Binding) string {
		content, _ := mask(t, "", b)
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(content), 0o400); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := func(t *testing.T, stdin string, argv ...string) {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Dir = strings.NewReader(stdin), t.TempDir()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "GIT_TERMINAL_PROMPT=0"}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), placeholder) {
			t.Errorf("%q: %v\n%s", argv, err, out)
		}
	}
	t.Run("git-credentials", func(t *testing.T) {
		testenv.Need(t, "git")
		file := place(t, bound("git.example.com", bawn.Basic, "me", "~/.git-credentials", "git-credentials"))
		run(t, "protocol=https\nhost=git.example.com\n\n", "git", "-c", "credential.helper=", "-c", "credential.helper=store --file="+file, "credential", "fill")
	})
	t.Run("netrc", func(t *testing.T) {
		testenv.Need(t, "python3")
		file := place(t, bound("git.example.com", bawn.Basic, "me", "~/.netrc", "netrc"))
		run(t, "", "python3", "-c", "import netrc,sys; print(netrc.netrc(sys.argv[1]).authenticators('git.example.com'))", file)
	})
	t.Run("pip", func(t *testing.T) {
		testenv.Need(t, "python3")
		file := place(t, bound("pip.example.com", bawn.Basic, "me", "~/.config/pip/pip.conf", "pip"))
		run(t, "", "python3", "-c", "import configparser,sys; c=configparser.RawConfigParser(); c.read(sys.argv[1]); print(c.get('global','extra-index-url'))", file)
	})
}

// TestNpmSendsThePlaceholder starts npm against a registry on loopback.
func TestNpmSendsThePlaceholder(t *testing.T) {
	testenv.Need(t, "node")
	sent := make(chan string, 10)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"username":"me"}`)
	}))
	defer registry.Close()
	host := strings.TrimPrefix(registry.URL, "http://")
	home := t.TempDir()
	real := "registry=" + registry.URL + "/\n//" + host + "/:_authToken=LEAK\nupdate-notifier=false\n"
	content, _ := mask(t, real, bound(host, bawn.Bearer, "", "~/.npmrc", "npmrc"))
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(content), 0o400); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("npm", "whoami")
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, home
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "me" {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := <-sent; got != "Bearer "+placeholder {
		t.Errorf("npm sent %q", got)
	}
}
