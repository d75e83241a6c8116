package egress_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/testenv/clients"
	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// The machine has four addresses of its own, public ones and private ones, and
// the wire leads to the outside.
const (
	machineV4        = "45.83.220.7"
	machinePrivateV4 = "10.99.0.7"
	machineV6        = "2a0e:97c0:0:1::7"
	machinePrivateV6 = "fd00:99::7"
	outsideV4        = "45.83.220.1"
	outsideV6        = "2a0e:97c0:0:1::1"
)

// The servers outside that answer questions about names.
const (
	resolverV4 = "9.9.9.9"              // dnsmasq: the one in the machine's resolv.conf
	openDNS    = "8.8.8.8"              // answers everybody everything
	openDNSv6  = "2001:4860::8888"      // the same one
	zoneServer = "127.0.0.1:5353"       // behind dnsmasq: what it can't say itself
	publicV6   = "2606:2800:21f:cb07::" // of every host, and the last part of its IPv4 address
)

// hosts are the names outside and their addresses. An address without a dot is
// the last part of two public ones.
var hosts = map[string]string{
	"allowed.test": "14", "denied.test": "15", "askable.test": "16", "other.test": "17", "api.test": "18", "git.test": "19",
	"a.wild.test": "20", "b.a.wild.test": "20", "x.y.wild.test": "20", "xn--bcher-kva.wild.test": "20", "wild.test": "20", "notwild.test": "21", "xn--bcher-kva.test": "22", "db.test": "23", "proxy.test": "24",
	"slow.test": "25", "fronted.test": "14", "deb.test": "26", "model.test": "28", "odd.test": "93.184.215.27", cloud: "31",

	"private.test": "10.77.0.2", "private172.test": "172.16.5.5", "private192.test": "192.168.7.7", "metadata.test": "169.254.169.254",
	"cgnat.test": "100.64.0.1", "docs.test": "192.0.2.7", "bench.test": "198.18.0.9", "own.test": machineV4, "own-private.test": machinePrivateV4,
	"loop.test": "127.0.0.1", "loop2.test": "127.8.8.8", "zero.test": "0.0.0.0",
	"metadata6.test": "fd00:ec2::254", "ula.test": "fd12::7", "own6.test": machineV6, "loop6.test": "::1", "zero6.test": "::",
	"mapped.test": "::ffff:10.77.0.2", "nat64.test": "64:ff9b::a4d:2", "sixtofour.test": "2002:a4d:2::1", "teredo.test": "2001:0:a4d:2::1",
}

// unnamed are addresses outside that have no name.
var unnamed = []string{"203.0.113.80", "93.184.215.99", publicV6 + "99", "1.1.1.1"}

// aliases are names that stand for other names.
var aliases = map[string]string{"alias.test": "denied.test", "alias-private.test": "private.test"}

// zones are asked of the server behind dnsmasq.
var zones = []string{"rebind.test", "mixed.test", "tunnel.test"}

// addresses returns the addresses of a host.
func addresses(host string) []string {
	a := hosts[host]
	if strings.ContainsAny(a, ".:") {
		return []string{a}
	}
	return []string{"93.184.215." + a, publicV6 + a}
}

// machineFiles are bound over files of the machine, by their name in the lab.
var machineFiles = map[string]string{
	"resolv.conf": "/etc/resolv.conf", "hosts": "/etc/hosts", "nsswitch.conf": "/etc/nsswitch.conf", "ca.pem": "/etc/ssl/certs/ca-certificates.crt",
}

// furnish writes the files that both the machine and the servers outside read.
func furnish(dir string) error {
	etc := map[string]string{
		"resolv.conf":   "nameserver " + resolverV4 + "\noptions timeout:2 attempts:1\n",
		"hosts":         "127.0.0.1 localhost machine\n::1 localhost machine\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	}
	for name, text := range etc {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "events"), nil, 0o666); err != nil {
		return err
	}
	return world.MakeAuthority(dir)
}

// dnsmasqConfig is the resolver's.
func dnsmasqConfig(dir string) string {
	var b strings.Builder
	b.WriteString("no-resolv\nno-hosts\nkeep-in-foreground\nno-negcache\ncache-size=0\nlocal-ttl=1\nbind-interfaces\nlocal=/test/\n")
	fmt.Fprintf(&b, "listen-address=%s\nlog-queries\nlog-facility=%s\npid-file=\n", resolverV4, filepath.Join(dir, "dns.log"))
	if os.Getuid() == 0 {
		b.WriteString("user=root\ngroup=root\n")
	}
	for name := range hosts {
		fmt.Fprintf(&b, "host-record=%s,%s\n", name, strings.Join(addresses(name), ","))
	}
	for _, c := range clients.All() {
		fmt.Fprintf(&b, "host-record=%s,%s\n", modelHost(c.Name), addresses("model.test")[0])
	}
	for name, real := range aliases {
		fmt.Fprintf(&b, "cname=%s,%s\n", name, real)
	}
	for _, zone := range zones {
		fmt.Fprintf(&b, "server=/%s/%s\n", zone, strings.Replace(zoneServer, ":", "#", 1))
	}
	for name := range registries {
		fmt.Fprintf(&b, "host-record=%s,93.184.215.30\n", name)
	}
	return b.String()
}

// registries are hosts that the default network profile names by pattern.
var registries = map[string]string{
	at("registry", "*.npmjs.org"): "npm", at("pypi", ".org"): "pip", at("files", "*.pythonhosted.org"): "pip",
	at("proxy", "*.golang.org"): "go", at("sum", "*.golang.org"): "go", at("deb", "*.debian.org"): "apt",
	at("registry", "*.yarnpkg.com"): "yarn", at("index", "*.crates.io"): "cargo", at("static", "*.crates.io"): "cargo", at("repo", "*.maven.apache.org"): "maven",
}

// at returns the name that host and the pattern "*.REST" make.
func at(host, pattern string) string { return host + strings.TrimPrefix(pattern, "*") }
