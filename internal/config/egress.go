package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// ruleEntry accepts what parse reads, in the one form in which it is written.
func ruleEntry[T fmt.Stringer](parse func(string) (T, error)) func(string, paths) (string, error) {
	return func(s string, _ paths) (string, error) {
		v, err := parse(s)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	}
}

// ruleCovers reports whether an entry gives all that another one would.
func ruleCovers[T interface{ Covers(T) bool }](parse func(string) (T, error), other string) func(string) bool {
	o, wrong := parse(other)
	return func(entry string) bool {
		e, err := parse(entry)
		return err == nil && wrong == nil && e.Covers(o)
	}
}

// secretEntry accepts the name of a secret, or "*".
func secretEntry(s string, _ paths) (string, error) {
	letter := func(c byte) bool { return alnum(c) || upper(c) || strings.IndexByte("._-", c) >= 0 }
	if s != "*" && (s == "" || len(s) > 64 || strings.IndexByte("._-", s[0]) >= 0 || !only(s, letter)) {
		return "", fmt.Errorf("secret %s is no name; want up to 64 letters, digits, \".\", \"_\" and \"-\", the first a letter or digit, or \"*\" for all", quote(s))
	}
	return s, nil
}

// proxyEntry accepts a proxy, "" for that of the environment, or
// bawn.NoProxy.
func proxyEntry(s string, _ paths) (string, error) {
	if s == "" || s == bawn.NoProxy {
		return s, nil
	}
	p, err := netrule.ParseProxy(s)
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// limitRequests takes an HTTP entry of an untrusted project file. A host that
// an HTTP entry names takes nothing else, so an entry about a host that is open
// without a limit narrows. About a host that is closed, open for git only, or
// has HTTP entries already it would add requests.
func (st *state) limitRequests(k *key, it item) error {
	http, err := netrule.ParseHTTP(it.text)
	if err != nil {
		return err
	}
	in := http.Host().String()
	switch {
	case slices.ContainsFunc(st.lists[k.path], covering(ruleCovers(netrule.ParseHTTP, it.text))):
		return nil
	case !slices.ContainsFunc(st.lists["isolation.hosts"], covering(ruleCovers(netrule.ParseHost, in))) || st.ruled(http):
		return widens(it.at, fmt.Sprintf("%s by %s", k.path, quote(it.text)))
	}
	if at, ok := st.pinned(k.path); ok {
		return pinnedError(it.at, k.path, at)
	}
	st.requests = append(st.requests, entry(it))
	return nil
}

func covering(by func(string) bool) func(entry) bool {
	return func(e entry) bool { return by(e.text) }
}

// ruled reports whether a trusted layer has an HTTP entry for a host that the
// entry speaks of.
func (st *state) ruled(http netrule.HTTP) bool {
	return slices.ContainsFunc(st.lists["isolation.http"], func(e entry) bool {
		other, err := netrule.ParseHTTP(e.text)
		return err != nil || other.Host().Overlaps(http.Host())
	})
}

// httpEntries are those of the trusted layers, and those of the project that
// still narrow: if a flag lists a host's requests, that counts.
func (st *state) httpEntries() []entry {
	all := slices.Clone(st.lists["isolation.http"])
	for _, e := range st.requests {
		if http, err := netrule.ParseHTTP(e.text); err == nil && !st.ruled(http) {
			all = append(all, e)
		}
	}
	return all
}

// egress is the reachable network of a session with the network "allowlist".
func (st *state) egress() bawn.Egress {
	ask, _ := st.scalars["isolation.ask_timeout"].value.(time.Duration)
	hosts, ports := st.wholeModels()
	return bawn.Egress{
		Hosts: joined(st.list("hosts"), hosts), HTTP: texts(st.httpEntries()), Git: st.list("git"), HostPorts: joined(st.list("host_ports"), ports), Ports: st.list("ports"), Secrets: st.list("secrets"),
		SSHAgent: st.scalars["isolation.ssh_agent"].value == true, Only: st.sealed, Closed: st.closedHosts(),
		Proxy: st.text("isolation.upstream_proxy"), Ask: ask, MaxConns: limit[int64](st, "net_connections"), MaxOutMB: limit[int64](st, "net_out_mb"),
		MaxUses: limit[int64](st, "secret_requests"), MaxLentMB: limit[int64](st, "secret_out_mb"),
	}
}

// joined are entries and those of more that are not among them.
func joined(entries, more []string) []string {
	for _, m := range more {
		if !slices.Contains(entries, m) {
			entries = append(slices.Clip(entries), m)
		}
	}
	return entries
}

// unheard finds flags about the network that the session's network makes
// meaningless: the user believes that they count.
func (st *state) unheard(f Flags) error {
	network := st.text("isolation.network")
	var errs Errors
	flags := f.egress()
	if f.SSHAgent {
		flags = append(flags, egressFlag{flag: "--ssh-agent", entries: []string{"true"}})
	}
	for _, e := range flags {
		if len(e.entries) > 0 && network != bawn.NetworkAllowlist.String() {
			errs.add(&Error{Place: flagPlace(e.flag), Problem: fmt.Sprintf("it would not count, since the network is %q; want --net allowlist", network),
				Hint: fmt.Sprintf("leave %s out, or say --net allowlist", e.flag)})
		}
	}
	if provider := st.text("isolation.provider"); f.Image != nil && provider != "docker" {
		errs.add(&Error{Place: flagPlace("--image"), Problem: "it would not count, since only the provider docker starts images", Hint: "leave --image out, or say --provider docker"})
	}
	return errs.err()
}
