package docker

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Name is the provider's.
const Name = "docker"

// Options are what the configuration says about this provider. The zero
// Options name no image, with which there is no session.
type Options struct {
	// Host is the engine's socket: its absolute path, or as DOCKER_HOST has it,
	// "unix:///run/user/1000/podman/podman.sock".
	// "" is DOCKER_HOST of the environment, and else where Docker's is. One that
	// is on another machine ("tcp://build.example:2376") is refused: the workspace
	// is not there.
	Host string
	// Image is what the container's root is made of: "name@sha256:…", or an
	// image's ID, "sha256:…". A tag alone is refused: it may mean something else
	// tomorrow.
	Image string
	// ExtraArgs are flags as "docker run" takes them. What would widen the
	// sandbox is refused; see [ParseExtra].
	ExtraArgs []string
	// Allowed are widening flags, exactly as ExtraArgs has them ("--cap-add=NET_RAW"),
	// that the user's own configuration lets pass. It must not be filled from a
	// file of the workspace.
	Allowed []string
	// Runtime is the name of one that the engine knows, such as "crun"; "" is the
	// engine's own choice. gVisor's is refused: provider gvisor starts it itself.
	Runtime string
	// Workspace is where the guest finds the workspace, absolute; "" is /workspace.
	Workspace string
	// MemorySwapMB is how much may be swapped out beside the limit of memory, MiB;
	// 0 is nothing.
	MemorySwapMB int64
}

// Setting is where a provider works.
type Setting struct {
	Program string   // absolute path of bawn, a static program, which the container runs
	Runtime string   // directory of what lives as long as a session, the user's own (package places)
	Cache   string   // file in which the outcome of probing is kept; "" for nowhere
	Native  string   // that of provider native
	Environ []string // of the user: DOCKER_HOST, XDG_RUNTIME_DIR
}

// defaultWorkspace is where a guest finds its workspace.
const defaultWorkspace = "/workspace"

// An OptionError says what is wrong with an option, and what to write instead.
type OptionError struct{ Option, Value, Why, Remedy string }

// Error puts the four into a sentence.
func (e *OptionError) Error() string {
	text := fmt.Sprintf("docker: %s = %q: %s", e.Option, e.Value, e.Why)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// reservedPlaces can't be a workspace's in a container: they are made anew, or
// what the image's programs live on.
var reservedPlaces = []string{"/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"}

// workspace is where the guest finds the workspace.
func (o Options) workspace() (string, error) {
	if o.Workspace == "" {
		return defaultWorkspace, nil
	}
	w := path.Clean(o.Workspace)
	taken := slices.ContainsFunc(reservedPlaces, func(p string) bool { return w == p || p != "/" && below(w, p) })
	if !path.IsAbs(o.Workspace) || taken {
		return "", &OptionError{"workspace", o.Workspace, "it is no place for a workspace in a container", fmt.Sprintf("use %q", defaultWorkspace)}
	}
	return w, nil
}

// digest is how an image is named for good (OCI image-spec, descriptor.md).
var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkImage refuses the name of an image that may change its meaning.
func (o Options) checkImage() error {
	if o.Image == "" {
		return &OptionError{"image", "", "no image is configured", `set image = "name@sha256:…" under [isolation.docker_options]`}
	}
	name, pin, pinned := strings.Cut(o.Image, "@")
	if digest.MatchString(o.Image) || pinned && name != "" && digest.MatchString(pin) {
		return nil
	}
	return &OptionError{"image", o.Image, "a tag may mean another image tomorrow", ""}
}

// below reports whether p lies strictly below dir; both are absolute and clean.
func below(p, dir string) bool {
	return p != dir && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// Check is what can be said of the options without an engine, where a session
// may have r: it errs with an *OptionError, or with each *FlagError.
func (o Options) Check(r bawn.Resources) error {
	if err := o.check(); err != nil {
		return err
	}
	_, err := ParseExtra(o.ExtraArgs, o.Allowed, r)
	return err
}

// check is that for the options without their extra arguments.
func (o Options) check() error {
	if _, err := o.workspace(); err != nil {
		return err
	}
	return o.checkImage()
}
