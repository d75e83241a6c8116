package docker

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// dockerSocket is where Docker listens if nothing else is said (dockerd(8)).
const dockerSocket = "/var/run/docker.sock"

// findHost returns where the engine listens: as configured, as the environment
// says, or where one usually does.
func findHost(configured string, getenv func(string) string) string {
	if filepath.IsAbs(configured) {
		return "unix://" + configured
	}
	if host := cmp.Or(configured, getenv("DOCKER_HOST")); host != "" {
		return host
	}
	own := filepath.Join(getenv("XDG_RUNTIME_DIR"), "docker.sock")
	if _, err := os.Stat(dockerSocket); err != nil && getenv("XDG_RUNTIME_DIR") != "" {
		if _, err := os.Stat(own); err == nil {
			return "unix://" + own
		}
	}
	return "unix://" + dockerSocket
}

// checkHost refuses an engine that does not work on this machine's files.
func checkHost(host string) error {
	scheme, rest, ok := strings.Cut(host, "://")
	switch {
	case !ok:
		return &OptionError{"host", host, "it is no address of an engine", "use unix:///path/of/its/socket"}
	case scheme != "unix":
		return &OptionError{"host", host, "an engine on another machine has neither the workspace nor the session's network", "use an engine of this machine, by its UNIX socket, or run bawn where the engine runs"}
	case !filepath.IsAbs(rest):
		return &OptionError{"host", host, "its path is not absolute", "use unix:///path/of/its/socket"}
	}
	return nil
}
