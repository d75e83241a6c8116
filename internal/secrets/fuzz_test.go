package secrets

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// fuzzFormat: whatever the real file is, reading it ends; a credential that it
// is found to hold, and that is long enough to be told from a setting, is not
// in the mask; and the mask has the placeholder where its reader finds it.
func fuzzFormat(f *testing.F, kind string, read func([]byte) ([]login, error), place bawn.Place, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	b := bound("git.example.com", place, "", "~/x", kind)
	if kind == "gh" {
		b.Host = "api.github.com"
	}
	f.Fuzz(func(t *testing.T, real []byte) {
		found, readErr := read(real)
		content, _, err := writers[kind](real, []bawn.Binding{b})
		if err != nil || readErr != nil {
			return // written anew
		}
		for _, l := range found {
			if len(l.value) >= 12 && !strings.Contains(placeholder+l.host+l.user, l.value) && strings.Contains(string(content), l.value) && strings.Count(string(real), l.value) == 1 {
				t.Fatalf("%q is in the mask\n%s", l.value, content)
			}
		}
		masked, err := read(content)
		if err != nil {
			t.Fatalf("the mask can't be read: %v\n%s", err, content)
		}
		has := false
		for _, l := range masked {
			has = has || l.value == placeholder
			if l.value != placeholder && l.value != "" {
				t.Fatalf("the mask has a credential %q\n%s", l.value, content)
			}
		}
		if !has {
			t.Fatalf("the mask has no placeholder\n%s", content)
		}
	})
}

func FuzzNpmrc(f *testing.F) {
	fuzzFormat(f, "npmrc", npmLogins, bawn.Bearer, "//git.example.com/:_authToken=0123456789abcdef\nfund=false\n", "//o/:_password=MDEyMzQ1Njc4OWFiY2RlZg==\n//o/:username=u\n", "\"//a/:_auth\" = 'YTpi'\n")
}

func FuzzNetrc(f *testing.F) {
	fuzzFormat(f, "netrc", netrcLogins, bawn.Basic, "machine git.example.com login me password 0123456789abcdef\n", "default login a password b\nmachine x macdef init\ny\n\n", "machine a account b password #c # d")
}

func FuzzGitCredentials(f *testing.F) {
	fuzzFormat(f, "git-credentials", gitLogins, bawn.Basic, "https://me:0123456789abcdef@git.example.com\n", "https://a@b\nhttp://c:d@e\n")
}

func FuzzHosts(f *testing.F) {
	fuzzFormat(f, "gh", ghLogins, bawn.Bearer, "github.com:\n  user: me\n  oauth_token: 0123456789abcdef\n  users: {me: {oauth_token: 0123456789abcdef}}\n", "a: &x {oauth_token: b}\nc: *x\n", "github.com: []")
}

func FuzzKubeconfig(f *testing.F) {
	fuzzFormat(f, "kubeconfig", kubeLogins, bawn.Bearer, "clusters: [{name: c, cluster: {server: \"https://git.example.com\"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: 0123456789abcdef}}]\n")
}

func FuzzDocker(f *testing.F) {
	fuzzFormat(f, "docker", dockerLogins, bawn.Basic, `{"auths":{"https://git.example.com/v1/":{"auth":"bWU6MDEyMzQ1Njc4OWFiY2RlZg=="}},"psFormat":"x"}`, `{"auths":{"a":{}}}`)
}

func FuzzPip(f *testing.F) {
	for _, s := range []string{"[global]\nindex-url = https://me:pw@git.example.com/simple\n", "proxy=http://a:b@c d://e@f"} {
		f.Add([]byte(s))
	}
	b := bound("git.example.com", bawn.Basic, "", "~/x", "pip")
	f.Fuzz(func(t *testing.T, real []byte) {
		content, _, err := maskPip(real, []bawn.Binding{b})
		if err == nil && !strings.Contains(string(content), placeholder) {
			t.Fatalf("no placeholder\n%s", content)
		}
	})
}
