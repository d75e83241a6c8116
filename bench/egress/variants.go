package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// The server has an address that is public by its class, since the relays that
// are measured refuse others, and that only our namespace has. The name is in
// the namespace's own /etc/hosts.
const (
	address  = "25.7.7.7"
	hostName = "bench.example"
)

// Names of the variants.
const (
	bare       = "bare loopback"
	ours       = "bawn, 10 hosts"
	oursName   = "bawn, by name"
	oursMany   = "bawn, 1,000 hosts"
	oursStart  = "bawn run --allow"
	oursOpened = "bawn run --allow --http, with a CA"
	proxyName  = "reverse proxy in Go"
	slirpName  = "slirp4netns, MTU 65520"
	pastaName  = "pasta"
	srtName    = "srt, through its proxy"
)

// open starts every variant and returns which are missing.
func (t *turns) open() ([]string, error) {
	if err := t.openOurs(); err != nil {
		return nil, err
	}
	var missing []string
	for _, p := range []struct {
		name string
		open func() error
	}{{slirpName, t.openSlirp}, {pastaName, t.openPasta}, {srtName, t.openSrt}} {
		if err := p.open(); err != nil {
			missing = append(missing, fmt.Sprintf("%s: not measured: %v", p.name, err))
		}
	}
	return missing, nil
}

// jobs are what every variant does.
func (t *turns) jobs(host string) []job {
	l, at := t.setup.Load, host+":"+portBytes
	return []job{
		{Kind: download, Addr: at, N: l.Bytes}, {Kind: connect, Addr: at, N: l.Connections}, {Kind: parallel, Addr: at, N: l.Parallel},
	}
}

func (t *turns) https(port string) job {
	return job{Kind: requests, Addr: "https://" + hostName + ":" + port + "/", N: t.setup.Load.Requests}
}

// join starts a client and adds the variant.
func (t *turns) join(v *variant, cmd *exec.Cmd) error {
	p, err := measure.StartPeer(cmd)
	if err != nil {
		return err
	}
	v.client = p
	for _, j := range v.jobs { // it answers, and every way is open
		j.N = 1
		if err := v.client.Ask(j, nil); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", j.Kind, err), p.Kill())
		}
	}
	t.variants = append(t.variants, v)
	return nil
}

// client is the command of one.
func (t *turns) client(before ...string) *exec.Cmd {
	return t.command(append(before, t.setup.Self, "-role", roleClient)...)
}

func (t *turns) openOurs() error {
	direct := append(t.jobs(address), t.https(portOrigin))
	plain := []job{t.https(portProxy)}
	byName := t.jobs(hostName)[1:2]
	few, many := t.run(10), t.run(1000)
	t.startOurs(oursStart, t.setup.Bawn, "run", "-q", "--net", "allowlist", "--allow", address+":"+portBytes, "--")
	t.startOurs(oursOpened, few...)
	return errors.Join(
		t.join(&variant{name: bare, ours: true, jobs: direct}, t.client()),
		t.join(&variant{name: proxyName, ours: true, jobs: plain}, t.client()),
		t.join(&variant{name: ours, ours: true, jobs: direct}, t.client(few...)),
		t.join(&variant{name: oursName, ours: true, jobs: byName}, t.client(few...)),
		t.join(&variant{name: oursMany, ours: true, jobs: t.jobs(address)[1:2]}, t.client(many...)),
	)
}

// startOurs times a start beside one without a network.
func (t *turns) startOurs(name string, argv ...string) {
	t.starts = append(t.starts, &start{name, between(
		func() *exec.Cmd { return t.command(append(argv[:len(argv):len(argv)], "true")...) },
		func() *exec.Cmd { return t.command(t.setup.Bawn, "run", "-q", "--net", "none", "--", "true") },
	)})
}

// run begins the command line of a session with so many entries of hosts, and
// one for requests.
func (t *turns) run(hosts int) []string {
	argv := []string{
		t.setup.Bawn, "run", "-q", "--net", "allowlist", "--allow", address + ":*", "--allow", hostName + ":" + portBytes,
		"--http", hostName + ":" + portOrigin + " GET /**",
	}
	for i := range hosts - 2 {
		argv = append(argv, "--allow", "host"+strconv.Itoa(i)+".example:"+portBytes)
	}
	return append(argv, "--")
}

// openSlirp runs a client in namespaces of its own and slirp4netns beside it.
func (t *turns) openSlirp() error {
	slirp, err := exec.LookPath("slirp4netns")
	if err != nil {
		return err
	}
	cmd := unshared(t.client())
	v := &variant{name: slirpName, jobs: t.jobs(address)}
	if v.client, err = measure.StartPeer(cmd); err != nil {
		return err
	}
	if v.helper, err = t.attach(slirp, cmd.Process.Pid); err != nil {
		return errors.Join(err, v.client.Kill())
	}
	t.variants = append(t.variants, v)
	t.starts = append(t.starts, &start{slirpName, func() (time.Duration, error) { return t.timeSlirp(slirp) }})
	return nil
}

// attach starts slirp4netns for the namespace of a process and waits until it
// is ready.
func (t *turns) attach(slirp string, pid int) (*exec.Cmd, error) {
	ready, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	cmd := t.command(slirp, "--configure", "--mtu=65520", "--ready-fd=3", strconv.Itoa(pid), "tap0")
	cmd.ExtraFiles = []*os.File{theirs}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return nil, errors.Join(errors.New("slirp4netns does not get ready (does it need /dev/net/tun?)"), cmd.Process.Kill(), cmd.Wait())
	}
	return cmd, nil
}

func (t *turns) timeSlirp(slirp string) (time.Duration, error) {
	holder := unshared(t.command("sleep", "60"))
	if err := holder.Start(); err != nil {
		return 0, err
	}
	began := time.Now()
	cmd, err := t.attach(slirp, holder.Process.Pid)
	took := time.Since(began)
	if err == nil {
		_ = end(cmd)
	}
	_ = end(holder)
	return took, err
}

// end ends a program that would not end by itself.
func end(cmd *exec.Cmd) error { return errors.Join(cmd.Process.Kill(), cmd.Wait()) }

func (t *turns) openPasta() error {
	pasta, err := exec.LookPath("pasta")
	if err != nil {
		return err
	}
	argv := []string{pasta, "--config-net", "--quiet", "--log-file", filepath.Join(t.setup.Who.Home, "pasta.log"), "--"}
	if err := t.join(&variant{name: pastaName, jobs: t.jobs(address)}, t.client(argv...)); err != nil {
		return err
	}
	t.starts = append(t.starts, &start{pastaName, between(
		func() *exec.Cmd { return t.command(append(argv[:len(argv):len(argv)], "true")...) },
		func() *exec.Cmd { return unshared(t.command("true")) },
	)})
	return nil
}

// openSrt runs a client that knows the proxy: srt has no other way.
func (t *turns) openSrt() error {
	srt := filepath.Join(t.setup.Peers, "node_modules", ".bin", "srt")
	if _, err := os.Stat(srt); t.setup.Peers == "" || err != nil {
		return errors.New("not installed (bench/launch/install-peers DIR, then -peers DIR)")
	}
	settings := filepath.Join(t.setup.Who.Home, "srt.json")
	text, err := json.Marshal(map[string]any{
		"network":    map[string]any{"allowedDomains": []string{address}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": []string{}, "allowWrite": []string{t.setup.Who.Workspace}, "denyWrite": []string{}},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(settings, text, 0o644); err != nil {
		return err
	}
	jobs := t.jobs(address)
	for i := range jobs {
		jobs[i].Proxy = true
	}
	jobs[1].N, jobs[2].N = max(1, jobs[1].N/5), max(1, jobs[2].N/5) // each takes milliseconds
	return t.join(&variant{name: srtName, jobs: jobs}, t.client(srt, "--settings", settings, "--"))
}
