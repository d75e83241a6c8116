package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// serve answers one client that is another process.
func serve(kind, address string) {
	l, err := net.Listen(kind, address)
	say("listen "+kind, err)
	if err != nil {
		return
	}
	defer l.Close()
	client := self("child", "dial", kind, l.Addr().String())
	must(client.Start())
	c, err := l.Accept()
	must(err)
	must(c.SetDeadline(time.Now().Add(20 * time.Second)))
	_, err = io.Copy(c, io.LimitReader(c, 1<<20))
	must(err)
	must(c.Close())
	say("client of "+kind, client.Wait())
}

// dial sends a mebibyte and wants it back.
func dial(kind, address string) {
	c, err := net.Dial(kind, address)
	must(err)
	must(c.SetDeadline(time.Now().Add(20 * time.Second)))
	sent := strings.Repeat("0123456789abcdef", 1<<16)
	go io.WriteString(c, sent)
	got, err := io.ReadAll(io.LimitReader(c, 1<<20))
	must(err)
	fmt.Println("echoed:", string(got) == sent)
}

func sockets([]string) {
	serve("unix", "socket")
	serve("unix", workingDirectory()+"/s2")
	must(os.Mkdir("d", 0o755))
	serve("unix", "d/s3")
	tmp, err := os.MkdirTemp("/tmp", "work-")
	must(err)
	defer os.RemoveAll(tmp)
	serve("unix", tmp+"/socket")
	packets()
	_, err = net.Dial("unix", "none")
	fmt.Println("dial none:", err)
	touch("file")
	_, err = net.Dial("unix", "file")
	fmt.Println("dial a file:", err)
	_, err = net.Listen("unix", "file")
	fmt.Println("listen on a file:", err)
}

// packets keeps messages apart on a connection.
func packets() {
	l, err := net.Listen("unixpacket", "packet")
	must(err)
	c, err := net.Dial("unixpacket", "packet")
	must(err)
	for _, s := range []string{"one", "two"} {
		_, err := io.WriteString(c, s)
		must(err)
	}
	s, err := l.Accept()
	must(err)
	buf := make([]byte, 100)
	n, err := s.Read(buf)
	must(err)
	fmt.Printf("%q\n", buf[:n])
}

func abstract([]string) {
	name := fmt.Sprintf("@workguest-%d", os.Getpid())
	serve("unix", name)
	_, err := net.Dial("unix", name)
	fmt.Println("gone afterwards:", err != nil)
}

func network([]string) {
	serve("tcp", "127.0.0.1:0")
	serve("tcp", "localhost:0")
	serve("tcp", "0.0.0.0:0")
	serve("tcp4", "127.0.0.7:0")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	address := l.Addr().String()
	_, err = net.Listen("tcp", address)
	say("listen twice", err)
	must(l.Close())
	_, err = net.Dial("tcp", address)
	say("dial nobody", err)
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	c, err := net.DialUDP("udp", nil, u.LocalAddr().(*net.UDPAddr))
	must(err)
	_, err = c.Write([]byte("udp"))
	must(err)
	buf := make([]byte, 10)
	n, _, err := u.ReadFromUDP(buf)
	say("udp", err)
	fmt.Printf("%q\n", buf[:n])
	interfaces, err := net.InterfaceByName("lo")
	must(err)
	fmt.Println(interfaces.Name, interfaces.Flags&net.FlagUp != 0)
}

// passing gives an open file to another holder of a socket.
func passing([]string) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	f, err := os.Create("passed")
	must(err)
	must(unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(f.Fd())), nil, 0))
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), oob, 0)
	must(err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	must(err)
	fds, err := unix.ParseUnixRights(&messages[0])
	must(err)
	_, err = unix.Write(fds[0], []byte("through a socket"))
	say("write to what came", err)
	cred, err := unix.GetsockoptUcred(pair[0], unix.SOL_SOCKET, unix.SO_PEERCRED)
	must(err)
	fmt.Println("own peer:", int(cred.Pid) == os.Getpid(), int(cred.Uid) == os.Getuid())
}
