package native

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sealed"
)

// credential is a place below HOME and what it is called.
type credential struct{ Name, Path string }

// credentials below HOME, neither read nor written by default (SPEC K4:
// Koda's table, and what belongs beside it). The names in Names are what
// "open" in the configuration takes.
var credentials = []credential{
	{"ssh", ".ssh"}, {"aws", ".aws"}, {"gnupg", ".gnupg"}, {"kube", ".kube"}, {"azure", ".azure"}, {"pass", ".password-store"},
	{"terraform", ".terraform.d"}, {"claude", ".claude"}, {"android", ".android"},
	{"gcloud", ".config/gcloud"}, {"gh", ".config/gh"}, {"op", ".config/op"}, {"helm", ".config/helm"}, {"netlify", ".config/netlify"},
	{"vercel", ".config/vercel"}, {"fly", ".config/fly"}, {"doppler", ".config/doppler"}, {"stripe", ".config/stripe"}, {"heroku", ".config/heroku"},
	{"koda", ".config/koda/db"},
	{"netrc", ".netrc"}, {"git-credentials", ".git-credentials"}, {"npmrc", ".npmrc"}, {"pypirc", ".pypirc"}, {"docker", ".docker/config.json"},
	{"vault", ".vault-token"}, {"env", ".env"},
	// Not in Koda's table: other agents' logins, keyrings, browsers, mail, histories that hold pasted keys.
	{"claude", ".claude.json"}, {"codex", ".codex"}, {"gemini", ".gemini"}, {"qwen", ".qwen"}, {"copilot", ".copilot"}, {"cursor", ".cursor"},
	{"opencode", ".local/share/opencode"}, {"opencode", ".config/opencode"}, {"pi", ".pi"}, {"cline", ".cline"}, {"amp", ".local/share/amp"}, {"amp", ".config/amp"},
	{"crush", ".local/share/crush"}, {"crush", ".config/crush"}, {"cursor", ".config/cursor"}, {"claude", ".config/claude"}, {"copilot", ".config/github-copilot"}, {"keyring", ".local/share/keyrings"}, {"kwallet", ".local/share/kwalletd"},
	{"pki", ".pki"}, {"age", ".config/age"}, {"sops", ".config/sops"}, {"rclone", ".config/rclone"}, {"hub", ".config/hub"}, {"glab", ".config/glab-cli"},
	{"doctl", ".config/doctl"}, {"hcloud", ".config/hcloud"}, {"fly", ".fly"}, {"oci", ".oci"}, {"boto", ".boto"}, {"s3cfg", ".s3cfg"}, {"pgpass", ".pgpass"},
	{"my", ".my.cnf"}, {"cargo", ".cargo/credentials.toml"}, {"cargo", ".cargo/credentials"}, {"gem", ".gem/credentials"}, {"m2", ".m2/settings.xml"},
	{"gradle", ".gradle/gradle.properties"}, {"nuget", ".nuget/NuGet/NuGet.Config"}, {"composer", ".config/composer/auth.json"},
	{"mozilla", ".mozilla"}, {"thunderbird", ".thunderbird"}, {"chrome", ".config/google-chrome"}, {"chromium", ".config/chromium"}, {"brave", ".config/BraveSoftware"},
	{"signal", ".config/Signal"}, {"slack", ".config/Slack"},
	{"history", ".bash_history"}, {"history", ".zsh_history"}, {"history", ".psql_history"}, {"history", ".node_repl_history"}, {"history", ".python_history"}, {"history", ".local/share/fish/fish_history"},
}

// credentials hides the table; what the user opened is read-only as the rest.
func (b *builder) credentials() {
	home := b.home()
	if home == "" {
		return
	}
	paths := make([]string, len(credentials))
	for i, c := range credentials {
		paths[i] = c.Path
	}
	present := b.there(home, paths)
	for i, c := range credentials {
		there := slices.ContainsFunc(present, func(e Entry) bool { return e.Name == c.Path })
		if b.opened(c.Name, path.Join(home, c.Path)) {
			continue
		}
		b.hidden = append(b.hidden, path.Join(home, c.Path))
		if !there {
			b.absent = append(b.absent, path.Join(home, paths[i]))
		}
	}
	for _, e := range present {
		i := slices.Index(paths, e.Name)
		if b.opened(credentials[i].Name, path.Join(home, e.Name)) {
			continue
		}
		hideFile(&b.mounts, e.File, "credentials")
		if e.Dir {
			b.hideLinked(e.Real)
		}
	}
}

// hideLinked hides what the links in a hidden directory lead to: who keeps dotfiles
// elsewhere keeps the credentials there too.
func (b *builder) hideLinked(dir string) {
	for _, name := range b.facts.Links(dir) {
		if f, ok := b.facts.Lookup(path.Join(dir, name)); ok && !f.Dir && !b.opened("", f.Real) {
			hideFile(&b.mounts, f, "credentials")
		}
	}
}

// scratch are places below HOME which programs insist on writing and whose
// contents nobody misses: a session gets empty ones.
var scratch = []string{".config/go/telemetry"}

func (b *builder) scratchPlaces() {
	for _, e := range b.there(b.home(), scratch) {
		if e.Dir {
			b.mounts = append(b.mounts, Mount{Kind: KindTmpfs, Target: e.Real, SizeMB: 16, Mode: 0o700, Why: "scratch"})
		}
	}
}

// isCredential reports whether a place is hidden as a credential, or lies in
// one that is, and no wider place that was asked for opens it again: the
// innermost of the mounts so far counts, and of two at one place the later.
func (b *builder) isCredential(real string) bool {
	var credential bool
	var innermost Mount
	for _, m := range b.mounts {
		if m.Target != real && !below(real, m.Target) {
			continue
		}
		credential = credential || m.Why == "credentials"
		if len(m.Target) >= len(innermost.Target) {
			innermost = m
		}
	}
	return credential && innermost.Kind != KindBind && innermost.Kind != KindBindRO
}

// checkOpen refuses names of credentials that nobody knows.
func checkOpen(open []string) error {
	for _, o := range open {
		if !path.IsAbs(o) && !slices.ContainsFunc(credentials, func(c credential) bool { return c.Name == o }) {
			return fmt.Errorf("open: %q is no known credential; use a path or one of %s", o, strings.Join(CredentialNames(), ", "))
		}
	}
	return nil
}

// CredentialNames lists the names that "open" takes.
func CredentialNames() []string {
	var list []string
	for _, c := range credentials {
		list = append(list, c.Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// CredentialPaths lists the places below home that hold credentials, without
// those that open names or covers; they need not exist. It errs as Layout does.
func CredentialPaths(home string, open []string) ([]string, error) {
	if err := checkOpen(open); err != nil {
		return nil, err
	}
	b := &builder{req: sandbox.Request{Open: open}}
	var list []string
	for _, c := range credentials {
		if p := path.Join(home, c.Path); !b.opened(c.Name, p) {
			list = append(list, p)
		}
	}
	return list, nil
}

func (b *builder) opened(name, p string) bool {
	for _, o := range b.req.Open {
		if o == name || o == p || below(p, o) {
			return true
		}
	}
	return false
}

// What marks caches: those that no program of the host looks into, and those
// that its package managers do.
const (
	whyPrivateCache = "private cache"
	whySharedCache  = "shared cache"
)

// cacheMounts are where caches are mounted, absolute.
func cacheMounts(mounts []Mount) []string {
	var list []string
	for _, m := range mounts {
		if m.Why == whyPrivateCache || m.Why == whySharedCache {
			list = append(list, m.Target)
		}
	}
	return list
}

// caches mounts the cache directories as the isolation says.
func (b *builder) caches() error {
	for _, dir := range b.iso.CacheDirs {
		f, ok, err := b.resolve("cache directory", dir)
		if err != nil {
			return err
		}
		if !ok || !f.Dir {
			if path.Base(dir) == ".cache" {
				b.noCache = true
			}
			continue
		}
		switch b.iso.Caches {
		case bawn.CacheShared:
			b.mounts = append(b.mounts, Mount{Kind: KindBind, Source: f.Real, Target: f.Real, Why: whySharedCache, ID: f.ID})
		case bawn.CachePrivate:
			if seal, ok := b.facts.Lookup(PrivateCache(b.req.CacheDir, f.Real)); ok {
				b.mounts = append(b.mounts, Mount{Kind: KindBind, Source: sealed.Inside(seal.Real), Target: f.Real, Why: whyPrivateCache})
			}
		}
	}
	return nil
}

// OneName writes a path as one name, which no other path has.
func OneName(p string) string {
	return strings.NewReplacer("%", "%25", "/", "%").Replace(strings.TrimPrefix(p, "/"))
}

// PrivateCache is the sealed directory in which Bawn keeps its own copy of a cache
// directory (package sealed).
func PrivateCache(base, dir string) string {
	return path.Join(base, OneName(dir))
}
