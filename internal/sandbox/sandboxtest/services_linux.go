package sandboxtest

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// listen starts the services of the host.
func (f *Fixtures) listen(t testing.TB) {
	f.TCP4 = port(serve(t, "tcp4", "127.0.0.1:0"))
	serve(t, "tcp4", "127.9.9.9:"+strconv.Itoa(f.TCP4))
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		f.TCP6 = port(answerAll(t, l))
	}
	f.UDP4 = udp(t)
	if host := outsideAddress(); host != "" {
		f.External = serve(t, "tcp4", host+":0").Addr().String()
	}
	for _, p := range []string{f.Stream, f.Agent, f.Bus} {
		serve(t, "unix", p)
		check(t, os.Chmod(p, 0o666))
	}
	serve(t, "unixpacket", f.SeqPacket)
	check(t, os.Chmod(f.SeqPacket, 0o666))
	serve(t, "unix", "@"+f.Abstract+"-stream")
	serve(t, "unixpacket", "@"+f.Abstract+"-seqpacket")
	datagram(t, f.Datagram)
	check(t, os.Chmod(f.Datagram, 0o666))
	datagram(t, "@"+f.Abstract+"-datagram")
	f.Inbound = f.keepDialling(t)
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func serve(t testing.TB, network, address string) net.Listener {
	l, err := net.Listen(network, address)
	check(t, err)
	return answerAll(t, l)
}

// answerAll writes the answer to every connection.
func answerAll(t testing.TB, l net.Listener) net.Listener {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = c.Write([]byte(probe.Answer))
				c.Close()
			}
		}
	}()
	return l
}

func udp(t testing.TB) int {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(t, err)
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 64)
		for {
			_, from, err := c.ReadFromUDP(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = c.WriteToUDP([]byte(probe.Answer), from)
			}
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// datagram receives and forgets, so that its queue is never full.
func datagram(t testing.TB, name string) {
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	check(t, err)
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 64)
		for {
			if _, _, err := c.ReadFromUnix(buf); errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
}

// outsideAddress is an IPv4 address of this machine that is no loopback, or "".
func outsideAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return ""
}

// keepDialling dials a port on which nobody of the host listens, in case
// somebody of a sandbox does.
func (f *Fixtures) keepDialling(t testing.TB) int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	address := l.Addr().String()
	n := port(l)
	check(t, l.Close())
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				if c, err := net.Dial("tcp4", address); err == nil {
					c.Close()
				}
			}
		}
	}()
	return n
}

// sharedObjects are those that have no file of the fixtures.
type sharedObjects struct {
	f             *Fixtures
	shm, sem, msg int
}

// made counts the fixtures of this process.
var made atomic.Int32

func makeObjects(t testing.TB, f *Fixtures) *sharedObjects {
	o := &sharedObjects{f: f}
	f.SysVKey = os.Getpid()<<8 | int(made.Add(1)&0xff) | 1<<30
	t.Cleanup(o.remove)
	check(t, o.make())
	return o
}

// make makes what is missing. A kernel without one kind makes the others.
func (o *sharedObjects) make() error {
	const flags = 0o1666 // IPC_CREAT
	key := uintptr(o.f.SysVKey)
	o.shm = sysv(unix.SYS_SHMGET, key, 4096, flags)
	o.sem = sysv(unix.SYS_SEMGET, key, 1, flags)
	o.msg = sysv(unix.SYS_MSGGET, key, flags, 0)
	if fd := openQueue(o.f.Queue); fd >= 0 {
		_ = unix.Fchown(fd, o.f.UID, o.f.GID)
		unix.Close(fd)
	}
	return os.WriteFile("/dev/shm/"+o.f.Shm, []byte(o.f.Token), 0o644)
}

func sysv(nr, a, b, c uintptr) int {
	id, _, e := unix.Syscall(nr, a, b, c)
	if e != 0 {
		return -1
	}
	return int(id)
}

func (o *sharedObjects) remove() {
	const ipcRemove = 0 // IPC_RMID
	sysv(unix.SYS_SHMCTL, uintptr(o.shm), ipcRemove, 0)
	unix.Syscall6(unix.SYS_SEMCTL, uintptr(o.sem), 0, ipcRemove, 0, 0, 0)
	sysv(unix.SYS_MSGCTL, uintptr(o.msg), ipcRemove, 0)
	removeQueue(o.f.Queue)
	os.Remove("/dev/shm/" + o.f.Shm)
	o.f.removeShared(o.f.inShared())
}

// shared are the places that every process of the host can write to.
var shared = []string{"/tmp", "/var/tmp", "/dev/shm"}

// inShared lists what the run has left in shared places.
func (f *Fixtures) inShared() []string {
	var list []string
	for _, dir := range shared {
		d, err := os.Open(dir)
		if err != nil {
			continue
		}
		names, _ := d.Readdirnames(-1)
		d.Close()
		for _, name := range names {
			if strings.HasPrefix(name, f.ProbeName()) {
				list = append(list, "+"+dir+"/"+name)
			}
		}
	}
	return list
}

// removeShared removes those of a list that lie there.
func (f *Fixtures) removeShared(list []string) {
	for _, p := range list {
		if strings.HasPrefix(p, "+/") {
			os.Remove(p[1:])
		}
	}
}
