package secrets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

func TestServices(t *testing.T) {
	all, err := parseServices(servicesText)
	if err != nil || len(all) < 20 {
		t.Fatalf("%d services, %v", len(all), err)
	}
	want := []bawn.Binding{{Host: "api.anthropic.com", Place: bawn.Header, Name: "x-api-key", Env: "ANTHROPIC_API_KEY"}}
	if diff := cmp.Diff(want, Service("ANTHROPIC_API_KEY")); diff != "" {
		t.Error(diff)
	}
	if got := Service("UNKNOWN"); len(got) != 0 {
		t.Errorf("unknown: %v", got)
	}
	for _, bad := range []string{"A", "A h.example.com nowhere", "A * bearer", "1A h.example.com bearer", "A h.example.com bearer - ~/x aws", "A h.example.com header - -"} {
		if _, err := parseServices(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// hub is below which the container client has its own registry.
const hub = ".docker.io"

var sourceFiles = map[string]string{
	".npmrc":               "//npm.example.com/:_authToken=npm-value-1\n//env.example.com/:_authToken=${TOKEN}\n//b.example.com/:username=me\n//b.example.com/:_password=" + "bnBtLXZhbHVlLTI=" + "\n",
	".netrc":               "machine git.example.com login me password netrc-value\n",
	".config/gh/hosts.yml": "github.com:\n    user: me\n    oauth_token: gh-value-123\nkeyring.example.com:\n    user: me\n",
	".kube/config":         "clusters: [{name: c, cluster: {server: \"https://kube.example.com:6443\"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: kube-value}}]\n",
	".git-credentials":     "https://me:git-value%2F1@git.example.com\n",
	".aws/credentials":     "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = aws-value-0123456789-aws-value-0123456789\n[sso]\ncredential_process = x\n",
	".docker/config.json":  `{"auths":{"https://index` + hub + `/v1/":{"auth":"bWU6ZG9ja2VyLXZhbHVl"}}}`,
}

// TestImport finds, keeps and binds what the files of a home have, and then
// masks the same files: no value is in what the guest sees.
func TestImport(t *testing.T) {
	home := t.TempDir()
	for name, text := range sourceFiles {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var finds []Find
	for _, s := range Sources {
		found, err := s.Look("", home)
		if err != nil {
			t.Fatal(err)
		}
		finds = append(finds, found...)
	}
	o := options(t)
	v := open(t, o)
	if err := v.Import(t.Context(), finds, false); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"npmrc-npm.example.com": "npm-value-1 npm.example.com bearer", "npmrc-b.example.com": "npm-value-2 b.example.com basic me",
		"netrc-git.example.com": "netrc-value git.example.com basic me", "gh-github.com": "gh-value-123 api.github.com bearer github.com basic me",
		"kubeconfig-kube.example.com-6443": "kube-value kube.example.com:6443 bearer", "git-credentials-git.example.com": "git-value/1 git.example.com basic me",
		"aws-default":        "AKIAIOSFODNN7EXAMPLE:aws-value-0123456789-aws-value-0123456789 *.amazonaws.com aws",
		"docker-index" + hub: "docker-value *.docker.io basic me",
	}
	got, names := map[string]string{}, []string{}
	list, err := v.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		words := []string{value(t, o, e.Name)}
		for _, b := range e.Bindings {
			words = append(words, b.Host, b.Place.String())
			if b.Name != "" {
				words = append(words, b.Name)
			}
		}
		got[e.Name] = strings.Join(words, " ")
		names = append(names, e.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	bs, err := v.Bindings(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	masks, _, _, err := Masks(bs, home)
	if err != nil || len(masks) != len(sourceFiles) {
		t.Fatalf("%d masks, %v", len(masks), err)
	}
	for _, m := range masks {
		if strings.Contains(string(m.Content), "-value") || strings.Contains(string(m.Content), "ZG9ja2VyLXZhbHVl") || strings.Contains(string(m.Content), "bnBtLXZhbHVl") {
			t.Errorf("%s has a value:\n%s", m.Target, m.Content)
		}
		if !slices.ContainsFunc(bs, func(b bawn.Binding) bool { return holdsSomewhere(string(m.Content), parts(b)[0]) }) {
			t.Errorf("%s has no placeholder:\n%s", m.Target, m.Content)
		}
	}
	for name, text := range sourceFiles {
		if now, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(now) != text {
			t.Errorf("%s was changed", name)
		}
	}
	wantError(t, v.Import(t.Context(), finds, false), "there already")
	if err := v.Import(t.Context(), finds, true); err != nil {
		t.Error(err)
	}
}

func holdsSomewhere(text, placeholder string) bool {
	for line := range strings.Lines(text) {
		if holds(line, placeholder) {
			return true
		}
	}
	return false
}

func TestLookEnv(t *testing.T) {
	env := []string{"GEMINI_API_KEY=first", "GEMINI_API_KEY=gemini-value", "EMPTY=", "OTHER_KEY=x"}
	f, err := LookEnv(env, "GEMINI_API_KEY")
	if err != nil || string(f.Value.Reveal()) != "gemini-value" || f.Name != "gemini-api-key" || len(f.Bindings) != 2 || f.Bindings[1].Place != bawn.InQuery || f.Bindings[1].Env != "" {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := LookEnv(env, "OTHER_KEY"); err != nil || len(f.Bindings) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, name := range []string{"EMPTY", "ABSENT"} {
		_, err := LookEnv(env, name)
		wantError(t, err, name)
	}
}

func TestLookRefuses(t *testing.T) {
	home := t.TempDir()
	_, err := Sources[0].Look("", home)
	if !Absent(err) {
		t.Errorf("an absent file: %v", err)
	}
	file := filepath.Join(home, "bad")
	if err := os.WriteFile(file, []byte("github.com: [oauth_token: hidden-value"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Sources[2].Look(file, home)
	wantError(t, err, "bad")
	if strings.Contains(err.Error(), "hidden-value") {
		t.Errorf("the error tells a value: %v", err)
	}
}
