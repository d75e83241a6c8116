package egress_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// errNoLab says why there is no lab, in a process that runs tests without one.
var errNoLab error

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probeArgument {
		os.Exit(probe(os.Args[2:]))
	}
	switch world.Role() {
	case world.First:
		os.Exit(exitCode(world.Build(machineFiles, machineNetwork)))
	case world.Outside:
		os.Exit(exitCode(0, world.Serve(outside)))
	case world.Machine:
		os.Exit(m.Run())
	}
	code, err := labs(m)
	if err != nil {
		errNoLab = err
		code = m.Run() // every test says that it needs the lab
	}
	os.Exit(code)
}

// exitCode says err and makes it a failure.
func exitCode(code int, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the lab:", err)
		return max(code, 1)
	}
	return code
}

// machineNetwork makes the machine's end of the wire and moves the other end.
func machineNetwork(outside int) error {
	return errors.Join(
		world.IP("link set lo up"),
		world.IP("link add machine0 type veth peer name out0 netns %d", outside),
		world.IP("addr add %s/24 dev machine0", machineV4),
		world.IP("addr add %s/24 dev machine0", machinePrivateV4),
		world.IP("-6 addr add %s/64 dev machine0 nodad", machineV6),
		world.IP("-6 addr add %s/64 dev machine0 nodad", machinePrivateV6),
		world.IP("link set machine0 up"),
		world.IP("route add default via %s", outsideV4),
		world.IP("-6 route add default via %s", outsideV6),
		// Processes with this process's group may use ping sockets.
		os.WriteFile("/proc/sys/net/ipv4/ping_group_range", fmt.Appendf(nil, "%d %d", os.Getgid(), os.Getgid()), 0),
	)
}
