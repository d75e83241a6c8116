package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// kinds of UNIX socket, and where the host listens with each.
var unixKinds = []struct {
	name string
	kind int
	path func(fx Fixtures) string
}{
	{"stream", unix.SOCK_STREAM, func(fx Fixtures) string { return fx.Stream }},
	{"datagram", unix.SOCK_DGRAM, func(fx Fixtures) string { return fx.Datagram }},
	{"seqpacket", unix.SOCK_SEQPACKET, func(fx Fixtures) string { return fx.SeqPacket }},
}

// unixChecks reach for sockets of the host.
func unixChecks() []Check {
	list := []Check{
		{Name: "E100", Why: "a socket of the host: Docker's, an agent's, the desktop's", Do: func(fx Fixtures) error { return connectUnix(unix.SOCK_STREAM, fx.Stream) }},
		{Name: "E102", Why: "a datagram, which needs no connect", Do: func(fx Fixtures) error { return sendTo(fx.Datagram, sendtoCall) }},
		{Name: "E105", Why: "the SSH agent", Do: func(fx Fixtures) error { return connectUnix(unix.SOCK_STREAM, fx.Agent) }},
		{Name: "E106", Why: "the session bus", Do: func(fx Fixtures) error { return connectUnix(unix.SOCK_STREAM, fx.Bus) }},
		{Name: "A500", Why: "a datagram by sendmsg", Do: func(fx Fixtures) error { return sendTo(fx.Datagram, sendmsgCall) }},
		{Name: "A501", Why: "a datagram by sendmmsg", Do: func(fx Fixtures) error { return sendTo(fx.Datagram, sendmmsgCall) }},
		{Name: "A502", Why: "a datagram to an abstract name", Do: func(fx Fixtures) error { return sendTo("@"+fx.Abstract+"-datagram", sendtoCall) }},
		{Name: "A503", Why: "a datagram by a socket of kind raw", Do: func(fx Fixtures) error { return connectKind(unix.SOCK_RAW, fx.Datagram, nil) }},
	}
	for _, k := range unixKinds {
		list = append(list,
			Check{Name: "A510:" + k.name, Why: "connect by path", Do: func(fx Fixtures) error { return connectUnix(k.kind, k.path(fx)) }},
			Check{Name: "A511:" + k.name, Why: "connect by abstract name", Do: func(fx Fixtures) error { return connectUnix(k.kind, "@"+fx.Abstract+"-"+k.name) }},
			Check{Name: "A512:" + k.name, Why: "connect without blocking", Do: func(fx Fixtures) error { return connectKind(k.kind|unix.SOCK_NONBLOCK, k.path(fx), nil) }},
		)
	}
	for _, s := range spellings() {
		list = append(list, Check{Name: "A513:" + s.id, Why: "connect by path " + s.why, Do: func(fx Fixtures) error {
			p, err := s.of(fx.Stream)
			if err != nil {
				return err
			}
			return connectUnix(unix.SOCK_STREAM, p)
		}})
	}
	for i := range list {
		list[i].Want = []errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ECONNREFUSED, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ELOOP, killed}
	}
	list = append(list, Check{Name: "E103", Why: "a pair of sockets, which every shell and runtime uses", Works: true, Do: socketPair})
	return named("ipc", list)
}

// name turns "@x" into the abstract name x.
func unixAddress(name string) *unix.SockaddrUnix { return &unix.SockaddrUnix{Name: name} }

func connectUnix(kind int, name string) error {
	if kind == unix.SOCK_DGRAM {
		return connectKind(kind, name, nil)
	}
	return connectKind(kind, name, answered)
}

// connectKind connects; long paths are reached from their directory.
func connectKind(kind int, name string, then func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if len(name) > 107 {
		if err := unix.Chdir(filepath.Dir(name)); err != nil {
			return err
		}
		name = filepath.Base(name)
	}
	if err := unix.Connect(fd, unixAddress(name)); err != nil || then == nil {
		return err
	}
	return then(fd)
}

func sendTo(name string, send func(fd int, to *unix.SockaddrUnix) error) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return send(fd, unixAddress(name))
}

func sendtoCall(fd int, to *unix.SockaddrUnix) error { return unix.Sendto(fd, []byte("hi"), 0, to) }

func sendmsgCall(fd int, to *unix.SockaddrUnix) error {
	return unix.Sendmsg(fd, []byte("hi"), nil, to, 0)
}

// sendmmsgCall builds struct mmsghdr by hand; see sendmmsg(2).
func sendmmsgCall(fd int, to *unix.SockaddrUnix) error {
	name := append([]byte{unix.AF_UNIX, 0}, to.Name...)
	name = append(name, 0)
	vector := &[2]uintptr{addressOf([]byte("hi")), 2}
	header := &[8]uintptr{addressOf(name), uintptr(len(name)), address(vector), 1}
	return rawErr(unix.SYS_SENDMMSG, uintptr(fd), address(header), 1, 0)
}

func socketPair(Fixtures) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fds[0], []byte("x"))
	return err
}
