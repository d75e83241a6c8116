package docker

import (
	"cmp"
	"net"
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

// checkHost refuses an engine that does not work on this machine's files, unless
// it is wanted so.
func (o Options) checkHost(host string) error {
	scheme, rest, ok := strings.Cut(host, "://")
	switch {
	case !ok:
		return &OptionError{"host", host, "it is no address of an engine", "use unix:///path/of/its/socket"}
	case scheme == "unix" && filepath.IsAbs(rest):
		return nil
	case scheme == "unix":
		return &OptionError{"host", host, "its path is not absolute", "use unix:///path/of/its/socket"}
	case !o.Remote:
		return &OptionError{"host", host, "an engine on another machine has neither the workspace nor the session's network", "use an engine of this machine, by its UNIX socket, or " + remoteRemedy}
	case scheme != "tcp":
		return &OptionError{"host", host, "an engine on another machine is spoken to over TCP with TLS, or by a UNIX socket that leads there", `"ssh -L" makes one; name that`}
	}
	name, port, err := net.SplitHostPort(rest)
	switch {
	case err != nil || name == "" || port == "":
		return &OptionError{"host", host, "it is no address with a port", "use tcp://NAME:2376"}
	case !filepath.IsAbs(o.Certs):
		return &OptionError{"host", host, "without TLS whoever is on the way is root there, and reads the workspace", "name the directory of ca.pem, cert.pem and key.pem: certs under [isolation.docker_options]"}
	}
	return nil
}

// remoteRemedy is what lets an engine on another machine be used.
const remoteRemedy = "set remote = true under [isolation.docker_options] of your own configuration: the workspace is then copied there, and back"
