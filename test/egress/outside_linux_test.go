package egress_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// An event is something that a server outside has seen.
type event struct {
	Server string // http, https, raw, first, udp, quic, dns, proxy, socks
	Local  string // the address that was reached
	From   string `json:",omitempty"` // the client's address
	SNI    string `json:",omitempty"`
	Host   string `json:",omitempty"` // or the name in a question
	Method string `json:",omitempty"` // or the type of a question
	Path   string `json:",omitempty"`
	Proto  string `json:",omitempty"`
	Header string `json:",omitempty"`
	Body   string `json:",omitempty"` // the beginning of what was sent
}

// outsider is the process with all servers in it.
type outsider struct {
	dir string
	ca  world.Authority
	mu  sync.Mutex
	log *os.File
}

// saw writes an event.
func (o *outsider) saw(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		line = []byte(err.Error())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.log.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "outside:", err)
	}
}

// outside takes every address and serves.
func outside(dir string) error {
	if err := outsideNetwork(); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "events"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	ca, err := world.ReadAuthority(dir)
	if err != nil {
		return err
	}
	o := &outsider{dir: dir, ca: ca, log: log}
	return errors.Join(o.serveNames(), o.serveStreams(), o.servePackets(), o.serveOrders())
}

// outsideNetwork gives this namespace every address that a name or an attack
// stands for, and lets everybody open low ports.
func outsideNetwork() error {
	all := []string{resolverV4, openDNS, openDNSv6}
	all = append(all, unnamed...)
	for name := range hosts {
		all = append(all, addresses(name)...)
	}
	var batch strings.Builder
	fmt.Fprintf(&batch, "link set lo up\naddr add %s/24 dev out0\n-6 addr add %s/64 dev out0 nodad\nlink set out0 up\n", outsideV4, outsideV6)
	done := map[string]bool{machineV4: true, machinePrivateV4: true, machineV6: true, machinePrivateV6: true}
	for _, a := range append(all, "93.184.215.30", rebindFirst, linkLocal) {
		addr := net.ParseIP(a)
		if done[a] || addr.IsLoopback() || addr.IsUnspecified() || strings.HasPrefix(a, "::ffff:") {
			continue
		}
		done[a] = true
		if addr.To4() != nil {
			fmt.Fprintf(&batch, "addr add %s/32 dev lo\n", a)
		} else {
			fmt.Fprintf(&batch, "-6 addr add %s/128 dev lo nodad\n", a)
		}
	}
	fmt.Fprintf(&batch, "route add default via %s\n-6 route add default via %s\n", machineV4, machineV6)
	return errors.Join(world.IPs(batch.String()),
		os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0),
		os.WriteFile("/proc/sys/net/ipv4/ping_group_range", fmt.Appendf(nil, "%d %d", os.Getgid(), os.Getgid()), 0))
}

// An order is a program that a test wants to be started outside.
type order struct {
	Argv []string
	Env  []string
	Dir  string
	UID  int  // 0: as the user who runs the lab
	Wait bool // for its end, and say its output
}

// A report is what became of an order.
type report struct {
	PID   int
	Out   string
	Error string
}

// serveOrders starts programs for the machine.
func (o *outsider) serveOrders() error {
	l, err := net.Listen("unix", filepath.Join(o.dir, "orders"))
	if err != nil {
		return err
	}
	go accept(l, func(c net.Conn) {
		var ord order
		if err := json.NewDecoder(c).Decode(&ord); err != nil {
			return
		}
		_ = json.NewEncoder(c).Encode(carryOut(ord))
	})
	return nil
}

func carryOut(ord order) report {
	cmd := exec.Command(ord.Argv[0], ord.Argv[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), ord.Env...), ord.Dir
	if ord.UID != 0 && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(ord.UID), Gid: uint32(ord.UID)}}
	}
	if ord.Wait {
		out, err := cmd.CombinedOutput()
		return report{Out: string(out), Error: text(err)}
	}
	err := cmd.Start()
	if err != nil {
		return report{Error: err.Error()}
	}
	go func() { _ = cmd.Wait() }()
	return report{PID: cmd.Process.Pid}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// accept serves each connection and closes it, a minute after its begin at the
// latest.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			serve(c)
		}()
	}
}
