package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/fspath"
)

// dockerTable begins the keys of the provider "docker".
const dockerTable = "isolation.docker_options."

// DockerOptions are the keys of [isolation.docker_options].
type DockerOptions struct {
	Image     string   // NAME[:TAG], NAME@sha256:DIGEST or sha256:ID; "" where none is stated
	Workspace string   // where the workspace is in the container; clean and absolute
	ExtraArgs []string // arguments of docker run, each "--NAME" or "--NAME=VALUE"
	AllowArgs []string // those of ExtraArgs that may widen, exactly as they stand there
	Runtime   string   // the engine's runtime by name; "" for the engine's default
	// MemorySwapMB is how much may be swapped out beside the limit of memory, MiB.
	MemorySwapMB int64
	Host         string // the engine's socket, an absolute path; "" for DOCKER_HOST's or the usual one
	// AcceptEscapes serves guests an engine that containers are known to get out of.
	AcceptEscapes bool
}

// Docker returns the settings of the provider "docker". Only the user and who
// manages the machine can set AllowArgs, Runtime, Host and AcceptEscapes.
func (c *Config) Docker() DockerOptions {
	at := func(name string) string { return c.st.text(dockerTable + name) }
	return DockerOptions{
		Image: at("image"), Workspace: at("workspace"), Runtime: at("runtime"), Host: at("host"),
		MemorySwapMB:  c.st.scalars[dockerTable+"memory_swap_mb"].value.(int64),
		AcceptEscapes: c.st.scalars[dockerTable+"accept_escapes"].value == true,
		ExtraArgs:     c.st.list("docker_options.extra_args"), AllowArgs: c.st.list("docker_options.allow_args"),
	}
}

// Runsc returns the path of the runsc program, "" for that of PATH.
func (c *Config) Runsc() string { return c.st.text("isolation.runsc") }

// GVisorUnprotected reports whether the user accepts that guests of the provider
// "gvisor" can make files that the host executes later.
func (c *Config) GVisorUnprotected() bool {
	return c.st.scalars["isolation.gvisor_accept_unprotected"].value == true
}

// FallbackToHost reports whether the user, or who manages the machine, lets a
// session run without a sandbox where no provider meets its policy. It does not
// hold where an untrusted project's file counts: a file that asks for what cannot
// be enforced would turn the sandbox off.
func (c *Config) FallbackToHost() bool {
	return c.st.scalars["isolation.allow_fallback_to_host"].value == true && !c.st.unasked
}

// FallbackWithheld reports whether a project's file alone keeps FallbackToHost
// from being true.
func (c *Config) FallbackWithheld() bool {
	return c.st.scalars["isolation.allow_fallback_to_host"].value == true && c.st.unasked
}

// hostless refuses the provider "host" unless a file says it.
func hostless(at Place) error {
	return &Error{Place: at, Problem: fmt.Sprintf("provider %q is no sandbox, and only a configuration of yours can choose it; want one of %q", HostProvider, SandboxProviders()),
		Hint: "to run without a sandbox, say provider = \"host\" under [isolation] in the file that \"bawn config path\" names"}
}

// runscEntry accepts the path of a program that a guest can't replace, or "".
func runscEntry(s string, p paths) (string, error) { return outside("runsc", s, p) }

// engineEntry accepts the path of a socket, or "".
func engineEntry(s string, p paths) (string, error) {
	if scheme, _, ok := strings.Cut(s, "://"); ok && scheme != "unix" {
		return "", fmt.Errorf("engine %s is not on this machine; want the path of a socket, such as \"/run/docker.sock\"; run bawn where the engine runs", quote(s))
	}
	return outside("engine", strings.TrimPrefix(s, "unix://"), p)
}

// outside accepts a path that does not lie in the workspace: whatever a guest
// can put there would be run, or believed, by the host's side of the next
// session.
func outside(what, s string, p paths) (string, error) {
	if s == "" {
		return "", nil
	}
	if s[0] != '/' && !strings.HasPrefix(s, "~/") {
		return "", fmt.Errorf("%s %s is no path that is absolute or below ~; want one", what, quote(s))
	}
	clean, err := pathEntry(s, p)
	if err == nil && fspath.Below(clean, p.workspace) {
		err = fmt.Errorf("%s %s lies in the workspace, where a guest could replace it; want a place outside", what, quote(s))
	}
	return clean, err
}

// imageEntry accepts a reference to an image as engines write it, or "".
func imageEntry(s string, _ paths) (string, error) {
	if s == "" || imageID(s) {
		return s, nil
	}
	name, digest, pinned := strings.Cut(s, "@")
	ok := func(c byte) bool { return alnum(c) || upper(c) || strings.IndexByte("._-/:", c) >= 0 }
	if len(s) > 512 || name == "" || !alnum(name[0]) && !upper(name[0]) || !only(name, ok) || pinned && !imageID(digest) ||
		path.Clean(name) != name || strings.HasSuffix(name, ":") {
		return "", fmt.Errorf("image %s is no reference; want NAME@sha256:DIGEST (docker image inspect --format '{{json .RepoDigests}}' NAME) or sha256:ID", quote(s))
	}
	return s, nil
}

// imageID reports whether s is an image's digest, which names one content.
func imageID(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && only(hex, func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' })
}

// pinnedImage reports whether a reference names one content for ever.
func pinnedImage(s string) bool {
	_, digest, _ := strings.Cut(s, "@")
	return s == "" || imageID(s) || imageID(digest)
}

// systemDirs are made anew in a container, or hold what its programs live on.
var systemDirs = []string{"/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"}

// mountPointEntry accepts a directory of a container.
func mountPointEntry(s string, _ paths) (string, error) {
	clean, err := fspath.Clean(s, "/", "/")
	if err != nil {
		return "", err
	}
	if s[0] != '/' || clean == "/" || slices.ContainsFunc(systemDirs, func(dir string) bool { return fspath.Below(clean, dir) }) {
		return "", fmt.Errorf("workspace %s can't be there in a container; want a directory such as \"/workspace\"", quote(s))
	}
	return clean, nil
}

// runtimeEntry accepts the name of an OCI runtime, or "".
func runtimeEntry(s string, _ paths) (string, error) {
	if s == "" {
		return s, nil
	}
	return s, wantName("runtime", s)
}

// dockerArgEntry accepts one long argument with its value, so that a list of
// them can be read, met and pinned entry by entry.
func dockerArgEntry(s string, _ paths) (string, error) {
	name, _, _ := strings.Cut(s, "=")
	stem := strings.TrimPrefix(name, "--")
	word := func(c byte) bool { return alnum(c) || c == '-' }
	if len(s) > 4096 || len(stem) != len(name)-2 || stem == "" || stem[0] == '-' || !only(stem, word) {
		return "", fmt.Errorf("argument %s is not one of docker run's; want one in an entry, in its long form: \"--NAME\" or \"--NAME=VALUE\"", quote(s))
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("argument %s has a control character or is not UTF-8", quote(s))
	}
	return s, nil
}
