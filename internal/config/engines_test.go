package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestHostProvider: a file of the user or of who manages
// the machine takes the sandbox away with one line, and nothing else does.
func TestHostProvider(t *testing.T) {
	for _, layer := range []func(Inputs) string{Inputs.managed, Inputs.User} {
		in := world(t)
		put(t, layer(in), "[isolation]\nprovider='host'")
		if got := mustLoad(t, in).Provider; got != HostProvider {
			t.Errorf("%s: provider %q", layer(in), got)
		}
		in.Flags = Flags{Provider: ptr(HostProvider)} // says again what holds
		mustLoad(t, in)
	}
	for _, c := range []struct{ text, want string }{
		{"provider='host'", "isolation.provider can't be set by a project"},
		{"allow_fallback_to_host=true", "isolation.allow_fallback_to_host can't be set by a project"},
		{"enabled=false", "isolation.enabled can't be set by a project"},
		{"[profiles.p]\nprovider='host'", "unknown key"},
		{"[profiles.p]\nallow_fallback_to_host=true", "unknown key"},
	} {
		in := world(t)
		put(t, in.projectFile(), "[isolation]\n"+c.text)
		data := []byte("[isolation]\n" + c.text)
		if tr, err := newTrust(in.Workspace, data); err != nil || tr.Add(in) != nil {
			t.Fatal(err)
		}
		if errs := refused(t, in); !strings.Contains(errs.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, errs, c.want)
		}
	}
}

func TestHostProviderIsNoFlags(t *testing.T) {
	for _, user := range []string{"", "[isolation]\nprovider='native'", "[isolation]\nallow_fallback_to_host=true"} {
		in := world(t)
		put(t, in.User(), user)
		in.Flags = Flags{Provider: ptr(HostProvider)}
		if errs := refused(t, in); !strings.HasPrefix(errs.Error(), `--provider: provider "host" is no sandbox`) || !strings.Contains(errs.Hint(), "config path") {
			t.Errorf("%q, --provider host: %v, hint %q", user, errs, errs.Hint())
		}
		in.Flags, in.Definition = Flags{}, &Definition{File: "d.toml", Text: []byte("isolation.provider='host'")}
		if errs := refused(t, in); !strings.Contains(errs.Error(), `d.toml:1:11: provider "host" is no sandbox`) {
			t.Errorf("%q, definition: %v", user, errs)
		}
	}
}

// TestEnabledIsNoProvider: "enabled = false" does not say what runs instead.
func TestEnabledIsNoProvider(t *testing.T) {
	in := world(t)
	for text, want := range map[string]string{
		"enabled=false": "isolation.enabled = false is refused", "fallback='ask'": "unknown key", "fallback='refuse'": "unknown key",
	} {
		put(t, in.User(), "[isolation]\n"+text)
		errs := refused(t, in)
		if prefix := in.User() + ":2:1: " + want; !strings.HasPrefix(errs.Error(), prefix) || !strings.Contains(errs.Hint(), "your own configuration") {
			t.Errorf("%q: %v, hint %q; want %q", text, errs, errs.Hint(), prefix)
		}
	}
}

// TestProviderPrecedence: the flag, then the user's file, then the
// managed one, then Bawn's own choice.
func TestProviderPrecedence(t *testing.T) {
	for _, name := range Providers() {
		for _, tt := range []struct{ managed, user, flag, want, from string }{
			{"", "", "", "", "built-in"},
			{name, "", "", name, "managed"},
			{"native", name, "", name, "user"},
			{name, "native", "landlock", "landlock", "flag"},
			{"landlock", "bwrap", name, name, "flag"},
			{"landlock", "bwrap", "-", "", "flag"}, // --provider ''
		} {
			in := world(t)
			put(t, in.ManagedPath, providerLine(tt.managed))
			put(t, in.User(), providerLine(tt.user))
			if tt.flag == HostProvider || name == "" {
				continue // see TestHostProviderIsNoFlags
			}
			if tt.flag != "" {
				in.Flags.Provider = ptr(strings.TrimPrefix(tt.flag, "-"))
			}
			c := mustLoad(t, in)
			if from := originOf(c, "isolation.provider").Layer.String(); c.Provider != tt.want || from != tt.from {
				t.Errorf("managed %q, user %q, flag %q: %q from %s; want %q from %s", tt.managed, tt.user, tt.flag, c.Provider, from, tt.want, tt.from)
			}
		}
	}
}

func providerLine(name string) string {
	if name == "" {
		return ""
	}
	return "isolation.provider = '" + name + "'\n"
}

func originOf(c *Config, key string) Origin {
	for _, o := range c.Origins() {
		if o.Key == key {
			return o
		}
	}
	return Origin{}
}

func TestDockerOptions(t *testing.T) {
	in := world(t)
	same(t, DockerOptions{Workspace: "/workspace"}, mustLoad(t, in).Docker())
	put(t, in.ManagedPath, "[isolation.docker_options]\nimage='corp/base:1'\nruntime='crun'\nallow_args=['--cap-add=SYS_PTRACE']\nextra_args=['--init']\n")
	put(t, in.User(), "[isolation]\nrunsc='~/bin/runsc'\nallow_fallback_to_host=true\ndocker_api=true\n[isolation.docker_options]\nimage='node:20-slim'\nhost='unix:///run/user/7/podman.sock'\nextra_args=['--shm-size=64m','--init']\nworkspace='/src'\nmemory_swap_mb=64\n")
	c := mustLoad(t, in)
	same(t, DockerOptions{Image: "node:20-slim", Workspace: "/src", ExtraArgs: []string{"--init", "--shm-size=64m"}, AllowArgs: []string{"--cap-add=SYS_PTRACE"},
		MemorySwapMB: 64, Runtime: "crun", Host: "/run/user/7/podman.sock"}, c.Docker())
	if c.Runsc() != in.Home+"/bin/runsc" || !c.FallbackToHost() || !c.Isolation(in.Workspace).DockerAPI {
		t.Errorf("runsc %q, fallback %v, docker api %v", c.Runsc(), c.FallbackToHost(), c.Isolation(in.Workspace).DockerAPI)
	}
	if c := mustLoad(t, world(t)); c.Runsc() != "" || c.FallbackToHost() || c.Isolation("/w").DockerAPI {
		t.Error("something is on without a file")
	}
}

// TestProjectsEngine: what a project says about engines, not trusted and
// trusted. "" is no error.
func TestProjectsEngine(t *testing.T) {
	const never, widens, other = "can't be set by a project", "would widen", "can be another one tomorrow"
	for _, c := range []struct{ line, untrusted, trusted string }{
		{"docker_options.image='node:20'", other, other},
		{"docker_options.image='base:1'", "", ""}, // the user's
		{"docker_options.image='node@" + digest + "'", widens, ""},
		{"docker_options.image='" + digest + "'", widens, ""},
		{"docker_options.workspace='/src'", widens, ""},
		{"docker_options.workspace='/workspace'", "", ""},
		{"docker_options.memory_swap_mb=64", widens, ""},
		{"docker_options.memory_swap_mb=0", "", ""},
		{"docker_options.extra_args=['--init']", "", ""},
		{"docker_options.extra_args=['--privileged']", widens, ""}, // which allow_args does not hold
		{"docker_options.allow_args=['--privileged']", never, never},
		{"docker_options.allow_args=['--cap-add=SYS_PTRACE']", never, never}, // also what is there
		{"docker_options.runtime='runc'", never, never},
		{"docker_options.host='/run/docker.sock'", never, never},
		{"docker_options.remote=true", "unknown key", "unknown key"},
		{"docker_options.accept_escapes=true", never, never},
		{"runsc='/bin/true'", never, never},
		{"gvisor_accept_unprotected=true", never, never},
		{"allow_fallback_to_host=false", never, never},
		{"docker_api=true", widens, ""},
		{"docker_api=false", "", ""},
	} {
		in := world(t)
		put(t, in.User(), "[isolation.docker_options]\nimage='base:1'\nextra_args=['--init']\nallow_args=['--cap-add=SYS_PTRACE']\n")
		put(t, in.projectFile(), "[isolation]\n"+c.line)
		wantError(t, in, c.line, c.untrusted)
		tr, err := newTrust(in.Workspace, []byte("[isolation]\n"+c.line))
		if err != nil || tr.Add(in) != nil {
			t.Fatal(err)
		}
		wantError(t, in, c.line+", trusted", c.trusted)
		if got := mustLoadUser(t, in).Docker().AllowArgs; len(got) != 1 {
			t.Errorf("%s: allow_args %q", c.line, got)
		}
	}
}

// mustLoadUser loads without the project's file.
func mustLoadUser(t *testing.T, in Inputs) *Config {
	put(t, in.projectFile(), "")
	return mustLoad(t, in)
}

func wantError(t *testing.T, in Inputs, what, want string) {
	t.Helper()
	_, err := Load(in)
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v; want %q", what, err, want)
	}
}

func TestEngineEntries(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"docker_options.image='a'", ""},
		{"docker_options.image='registry.example:5000/team/app:1.2'", ""},
		{"docker_options.image='app:1@" + digest + "'", ""},
		{"docker_options.image='-it'", "is no reference"},
		{"docker_options.image='a b'", "is no reference"},
		{"docker_options.image='../a'", "is no reference"},
		{"docker_options.image='a:'", "is no reference"},
		{"docker_options.image='a@sha256:12'", "is no reference"},
		{"docker_options.image='@" + digest + "'", "is no reference"},
		{"docker_options.image='sha256:" + strings.Repeat("G", 64) + "'", ""}, // a name with a tag, as engines read it
		{"docker_options.image=\"a\\n\"", "is no reference"},
		{"docker_options.extra_args=['-v=/:/x']", "in its long form"},
		{"docker_options.extra_args=['--volume','/:/x']", `"/:/x" is not one of docker run`},
		{"docker_options.extra_args=['--']", "is not one of docker run"},
		{"docker_options.extra_args=['---x']", "is not one of docker run"},
		{"docker_options.extra_args=['--Label=x']", "is not one of docker run"},
		{"docker_options.extra_args=['--label=a b=c']", ""},
		{"docker_options.extra_args=[\"--label=\\u001b[2J\"]", "control character"},
		{"docker_options.allow_args=['privileged']", "is not one of docker run"},
		{"docker_options.runtime='io.containerd.crun.v1'", ""},
		{"docker_options.runtime='/bin/sh'", "is no name"},
		{"docker_options.host='tcp://10.0.0.1:2376'", "not on this machine"},
		{"docker_options.remote=true", "unknown key"},
		{"docker_options.host='ssh://h'", "not on this machine"},
		{"docker_options.host='docker.sock'", "no path that is absolute"},
		{"docker_options.host='WORKSPACE/docker.sock'", "where a guest could replace it"},
		{"docker_options.host='unix://WORKSPACE/docker.sock'", "where a guest could replace it"},
		{"docker_options.host='/etc/bawn/docker.sock'", "Bawn's own state"},
		{"docker_options.workspace='/'", "can't be there"},
		{"docker_options.workspace='/proc/x'", "can't be there"},
		{"docker_options.workspace='/x/../dev'", "can't be there"},
		{"docker_options.workspace='src'", "can't be there"},
		{"runsc='runsc'", "no path that is absolute"},
		{"runsc='./runsc'", "no path that is absolute"},
		{"runsc='WORKSPACE/runsc'", "where a guest could replace it"},
		{"runsc='/x/..WORKSPACE/bin/runsc'", "where a guest could replace it"},
		{"runsc='/usr/local/bin/runsc'", ""},
		{"docker_options.workspace='/usr/src'", "can't be there"},
		{"docker_options.memory='1g'", "unknown key"},
		{"docker_options.memory_swap_mb=64", ""},
		{"docker_options.memory_swap_mb=-1", "want 0 to"},
		{"docker_options='x'", "is a table"},
	} {
		in := world(t)
		put(t, in.User(), "[isolation]\n"+strings.ReplaceAll(c.line, "WORKSPACE", in.Workspace))
		wantError(t, in, c.line, c.want)
	}
}

// TestEngineOutOfReach: what a guest could replace is refused, by whatever name
// it is reached.
func TestEngineOutOfReach(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"in its place":        {"runsc='~/bin/runsc'", ""},
		"the socket":          {"docker_options.host='~/bin/runsc'", ""},
		"absent":              {"runsc='~/bin/absent'", ""}, // who needs it says so
		"absent, to be made":  {"runsc='~/bin/absent'\nrw=['~/bin']", "which a session can write"},
		"in a writable place": {"runsc='~/bin/runsc'\nrw=['~/bin']", "which a session can write"},
		"a link into one":     {"runsc='~/link'\nrw=['~/bin']", "which a session can write"},
		"a link out of one":   {"runsc='~/out/link'\nrw=['~/out']", "which a session can write"},
		"a socket in one":     {"docker_options.host='~/bin/runsc'\nrw=['~/bin']", "which a session can write"},
	} {
		in := world(t)
		put(t, filepath.Join(in.Home, "bin/runsc"), "")
		put(t, filepath.Join(in.Home, "out/x"), "")
		for _, link := range []string{"link", "out/link"} {
			if err := os.Symlink(filepath.Join(in.Home, "bin/runsc"), filepath.Join(in.Home, link)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, in.User(), "[isolation]\n"+tt.text)
		err := mustLoad(t, in).Check(func() []string { return nil })
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), in.User()+":2:1")) {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
	}
}
