package egressd

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/dial"
)

// proxyVariables are where the host says through which proxy it reaches the
// world, the first that is set counts. All that leaves goes through a tunnel,
// so HTTP_PROXY, which is for plain requests, says nothing here.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"}

// upstream is the proxy through which the session reaches the world, or nil:
// the one that is configured, or else the host's. Only a variable can hold a
// password, and no error does.
func upstream(configured string, env environ) (*dial.Proxy, error) {
	direct := env.first("NO_PROXY", "no_proxy")
	switch configured {
	case bawn.NoProxy:
		return nil, nil
	case "":
	default:
		return dial.ParseProxy(configured, direct)
	}
	address := env.first(proxyVariables...)
	if address == "" {
		return nil, nil
	}
	if !strings.Contains(address, "://") { // as curl takes it
		address = "http://" + address
	}
	p, err := dial.ParseProxy(address, direct)
	if err != nil {
		return nil, fmt.Errorf("the environment names a proxy: %w; set it right, or say isolation.upstream_proxy = %q", err, bawn.NoProxy)
	}
	return p, nil
}

// first returns the first of some variables that is not empty, or "".
func (e environ) first(names ...string) string {
	for _, n := range names {
		if v := e.get(n); v != "" {
			return v
		}
	}
	return ""
}
