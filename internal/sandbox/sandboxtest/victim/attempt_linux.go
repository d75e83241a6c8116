package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// attempt tries one thing after the other, each a word and its arguments in
// one argument of ours, and prints what came of it.
//
//	tcp|udp|sendto|udplite ADDRESS:PORT   send a question and wait for the answer
//	complaint ADDRESS:PORT                the same by UDP; what is said of a refused packet
//	serve|serveudp|serveudplite ADDRESS:PORT   answer in the background
//	many ADDRESS:PORT N AT-A-TIME         connect N times
//	route, address, bring-up              change the network
//	read|write|append|create|chmod|unlink|umount PATH, rename FROM TO
//	wait                                  until standard input ends
func attempt(args []string) error {
	for _, text := range args {
		words := strings.Fields(text)
		a := probe.Attempt{Op: text}
		start, err := time.Now(), error(unix.EINTR)
		for errors.Is(err, unix.EINTR) { // calls that time out are not restarted after a signal of Go's: signal(7)
			start = time.Now()
			err = try(words[0], words[1:], &a)
		}
		a.Micros = time.Since(start).Microseconds()
		if err != nil {
			a.Errno = spell(err)
		}
		if err := print(a); err != nil {
			return err
		}
	}
	return nil
}

func spell(err error) string {
	var e errno
	if errors.As(err, &e) && e != nothing {
		return unix.ErrnoName(e)
	}
	return err.Error()
}

func try(word string, args []string, a *probe.Attempt) error {
	if do, ok := fileAttempts[word]; ok {
		return do(args)
	}
	switch word {
	case "wait":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "route":
		return changeNetwork(unix.RTM_NEWROUTE, []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0, 8, 0, unix.RTA_OIF, 0, 1, 0, 0, 0})
	case "address":
		return changeNetwork(unix.RTM_NEWADDR, []byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0, 8, 0, unix.IFA_LOCAL, 0, 9, 9, 9, 9})
	case "bring-up":
		return loopbackUp()
	}
	at, err := netip.ParseAddrPort(args[0])
	if err != nil {
		return err
	}
	switch word {
	case "tcp":
		return ask(at, unix.SOCK_STREAM, 0, true, a)
	case "udp":
		return ask(at, unix.SOCK_DGRAM, 0, true, a)
	case "sendto":
		return ask(at, unix.SOCK_DGRAM, 0, false, a)
	case "udplite":
		return ask(at, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, true, a)
	case "complaint":
		return complaint(at, a)
	case "serve":
		return serve(at, unix.SOCK_STREAM, 0)
	case "serveudp":
		return serve(at, unix.SOCK_DGRAM, 0)
	case "serveudplite":
		return serve(at, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE)
	case "many":
		return many(at, args[1], args[2], a)
	}
	return fmt.Errorf("unknown attempt %q", word)
}

var fileAttempts = map[string]func(args []string) error{
	"read":   func(args []string) error { return ignore(os.ReadFile(args[0])) },
	"write":  func(args []string) error { return openAndWrite(args[0], unix.O_WRONLY) },
	"append": func(args []string) error { return openAndWrite(args[0], unix.O_WRONLY|unix.O_APPEND) },
	"chmod":  func(args []string) error { return unix.Fchmodat(unix.AT_FDCWD, args[0], 0o666, 0) },
	"unlink": func(args []string) error { return unix.Unlink(args[0]) },
	"umount": func(args []string) error { return unix.Unmount(args[0], unix.MNT_DETACH) },
	"create": func(args []string) error { return os.WriteFile(args[0], []byte("new"), 0o644) },
	"rename": func(args []string) error { return unix.Rename(args[0], args[1]) },
}

func ignore[T any](_ T, err error) error { return err }

func familyOf(a netip.Addr) (int, func(port int) unix.Sockaddr) {
	if a.Is4() {
		return unix.AF_INET, func(p int) unix.Sockaddr { return &unix.SockaddrInet4{Port: p, Addr: a.As4()} }
	}
	return unix.AF_INET6, func(p int) unix.Sockaddr { return &unix.SockaddrInet6{Port: p, Addr: a.As16()} }
}

// addrPort spells an address as netip does.
func addrPort(s unix.Sockaddr) string {
	switch s := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port)).String()
	}
	return fmt.Sprintf("%T", s)
}

// ask sends a question and waits for the answer.
func ask(to netip.AddrPort, kind, proto int, connect bool, a *probe.Attempt) error {
	family, at := familyOf(to.Addr())
	fd, err := impatient(family, kind, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if connect {
		if err = unix.Connect(fd, at(int(to.Port()))); err == nil {
			_, err = unix.Write(fd, []byte("?"))
		}
	} else {
		err = unix.Sendto(fd, []byte("?"), 0, at(int(to.Port())))
	}
	if err != nil {
		return late(err)
	}
	if local, err := unix.Getsockname(fd); err == nil {
		a.Local = addrPort(local)
	}
	buf := make([]byte, 256)
	n, from, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return late(err)
	}
	if from != nil {
		a.From = addrPort(from)
	}
	a.Answer = string(buf[:n])
	return nil
}

// complaint sends a datagram and returns the error that came back for it, be
// it sent or not.
func complaint(to netip.AddrPort, a *probe.Attempt) error {
	family, at := familyOf(to.Addr())
	fd, err := impatient(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, at(int(to.Port()))); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("?")); err != nil && err != unix.EPERM {
		return err
	}
	buf := make([]byte, 256)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	a.Answer = string(buf[:max(n, 0)])
	return late(err)
}

// serve answers every request, until the process ends.
func serve(at netip.AddrPort, kind, proto int) error {
	family, addr := familyOf(at.Addr())
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, addr(int(at.Port()))); err != nil {
		return err
	}
	if kind != unix.SOCK_STREAM {
		go func() {
			buf := make([]byte, 256)
			for {
				if _, from, err := unix.Recvfrom(fd, buf, 0); err == nil {
					_ = unix.Sendto(fd, []byte("inside"), 0, from)
				}
			}
		}()
		return nil
	}
	if err := unix.Listen(fd, 128); err != nil {
		return err
	}
	go func() {
		for {
			if c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC); err == nil {
				_, _ = unix.Write(c, []byte("inside"))
				unix.Close(c)
			}
		}
	}()
	return nil
}

// many connects so many times and wants an answer each time.
func many(to netip.AddrPort, count, width string, a *probe.Attempt) error {
	n, err1 := strconv.Atoi(count)
	w, err2 := strconv.Atoi(width)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var answered, next atomic.Int64
	var group sync.WaitGroup
	var first error
	var once sync.Once
	for range w {
		group.Go(func() {
			for next.Add(1) <= int64(n) {
				var one probe.Attempt
				err := error(unix.EINTR)
				for errors.Is(err, unix.EINTR) {
					err = ask(to, unix.SOCK_STREAM, 0, true, &one)
				}
				if err != nil || one.Answer == "" {
					once.Do(func() { first = err })
					continue
				}
				answered.Add(1)
			}
		})
	}
	group.Wait()
	a.Answer = strconv.FormatInt(answered.Load(), 10)
	return first
}

// changeNetwork sends one request of rtnetlink(7) and returns what the kernel
// answers.
func changeNetwork(kind uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	message := make([]byte, unix.SizeofNlMsghdr+len(body))
	native := binary.NativeEndian
	native.PutUint32(message, uint32(len(message)))
	native.PutUint16(message[4:], kind)
	native.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	copy(message[unix.SizeofNlMsghdr:], body)
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return orNothing(err)
	}
	if e := -int32(native.Uint32(buf[unix.SizeofNlMsghdr:])); e != 0 {
		return errno(e)
	}
	return nil
}
