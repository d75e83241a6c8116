package main

import (
	"bytes"
	"fmt"
	"os"
	"sort"
	"unsafe"

	"golang.org/x/sys/unix"
)

// descriptors looks at what open gives back.
func descriptors([]string) {
	for _, flags := range []int{create, create | unix.O_CLOEXEC, create | unix.O_APPEND, create | unix.O_NONBLOCK, create | unix.O_SYNC, create | unix.O_DSYNC, unix.O_CREAT | unix.O_RDWR, unix.O_CREAT | unix.O_RDONLY, create | unix.O_NOATIME, unix.O_CREAT | unix.O_PATH, create | unix.O_TRUNC, unix.O_CREAT | 3, create | unix.O_ASYNC} {
		fd, err := unix.Open("f", flags, 0o644)
		say(fmt.Sprintf("flags %#x", flags), err)
		if err != nil {
			continue
		}
		fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		must(err)
		cloexec, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		must(err)
		fmt.Printf("  descriptor %d, flags %#x, close-on-exec %d\n", fd-lowest(), fl, cloexec)
		unix.Close(fd)
	}
	must(unix.Close(0))
	fd, err := unix.Open("zero", create, 0o644)
	must(err)
	fmt.Println("the lowest descriptor is", fd)
	offsets()
}

// lowest returns the lowest descriptor that is free.
func lowest() int {
	fd, err := unix.Open("/", unix.O_RDONLY, 0)
	must(err)
	must(unix.Close(fd))
	return fd - 1
}

// offsets checks that two opens are two open files, and what append means.
func offsets() {
	a, err := unix.Open("offsets", unix.O_CREAT|unix.O_RDWR, 0o644)
	must(err)
	b, err := unix.Open("offsets", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND, 0o644)
	must(err)
	for _, fd := range []int{a, b, a, b} {
		_, err := unix.Write(fd, []byte{byte('0' + fd - a), '\n'})
		must(err)
	}
	must(unix.Ftruncate(a, 3))
	_, err = unix.Write(b, []byte("end"))
	must(err)
	n, err := unix.Pread(a, make([]byte, 100), 0)
	must(err)
	fmt.Println("bytes:", n)
	say("read what is open for writing", readErr(b))
}

func readErr(fd int) error {
	_, err := unix.Read(fd, make([]byte, 1))
	return err
}

// modes creates with many modes; the umask is the caller's.
func modes([]string) {
	for _, mode := range []uint32{0, 0o111, 0o400, 0o600, 0o644, 0o666, 0o755, 0o777, 0o1644, 0o1777} { // setuid and setgid are not a guest's to give
		suffix := fmt.Sprintf("%04o", mode)
		say("create "+suffix, open("f"+suffix, create|unix.O_EXCL, mode))
		say("mkdir "+suffix, unix.Mkdir("d"+suffix, mode))
		say("mkfifo "+suffix, unix.Mkfifo("p"+suffix, mode))
		say("mknod "+suffix, unix.Mknod("n"+suffix, unix.S_IFREG|mode, 0))
		for _, name := range []string{"f", "d", "p", "n"} {
			var st unix.Stat_t
			must(unix.Lstat(name+suffix, &st))
			fmt.Printf("%s %o\n", name, st.Mode)
		}
	}
	touch("setgid/f")
	must(unix.Mkdir("setgid/d", 0o777))
	fd, err := unix.Open("unwritable", unix.O_RDWR|unix.O_CREAT, 0o400)
	say("create, writable though the mode is not", err)
	_, err = unix.Write(fd, []byte("x"))
	say("write to it", err)
	socketMode()
}

func socketMode() {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	say("bind", unix.Bind(s, &unix.SockaddrUnix{Name: "socket"}))
	say("bind again", unix.Bind(s, &unix.SockaddrUnix{Name: "socket2"}))
	t, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	say("bind where something is", unix.Bind(t, &unix.SockaddrUnix{Name: "socket"}))
	say("bind where nothing can be", unix.Bind(t, &unix.SockaddrUnix{Name: "none/socket"}))
}

// tmpfile makes a file without a name and then gives it one.
func tmpfile([]string) {
	fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o640)
	say("O_TMPFILE", err)
	if err != nil {
		return
	}
	_, err = unix.Write(fd, []byte("named late"))
	must(err)
	say("name it", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "late", unix.AT_SYMLINK_FOLLOW))
	say("name it again", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "late", unix.AT_SYMLINK_FOLLOW))
	fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o600)
	must(err)
	say("name what may get none", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "never", unix.AT_SYMLINK_FOLLOW))
	say("O_TMPFILE in a file", open("late", unix.O_TMPFILE|unix.O_RDWR, 0o600))
	say("O_TMPFILE for reading", open(".", unix.O_TMPFILE|unix.O_RDONLY, 0o600))
	say("O_TMPFILE nowhere", open("none", unix.O_TMPFILE|unix.O_RDWR, 0o600))
	say("O_TMPFILE in /tmp", open("/tmp", unix.O_TMPFILE|unix.O_RDWR, 0o600))
}

// sparse makes holes.
func sparse([]string) {
	f, err := os.Create("sparse")
	must(err)
	must(f.Truncate(8 << 20))
	_, err = f.WriteAt([]byte("x"), 4<<20)
	must(err)
	data, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_DATA)
	must(err)
	hole, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
	must(err)
	fmt.Println("data at", data, "hole at", hole)
	say("allocate", unix.Fallocate(int(f.Fd()), 0, 0, 1<<20))
	say("punch", unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 1<<20))
	say("truncate by name", unix.Truncate("sparse", 6<<20))
	say("truncate none", unix.Truncate("none", 0))
	var st unix.Stat_t
	must(unix.Fstat(int(f.Fd()), &st))
	fmt.Println("size", st.Size, "few blocks", st.Blocks < 100)
}

// mapped writes through memory.
func mapped([]string) {
	f, err := os.OpenFile("mapped", os.O_RDWR|os.O_CREATE, 0o644)
	must(err)
	must(f.Truncate(1 << 16))
	mem, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(err)
	copy(mem, "written through memory")
	say("msync", unix.Msync(mem, unix.MS_SYNC))
	must(os.WriteFile("head", bytes.TrimRight(mem[:64], "\x00"), 0o644))
	must(self("child", "cat", "head").Run())
	say("make it executable", unix.Mprotect(mem, unix.PROT_READ|unix.PROT_EXEC))
	must(unix.Munmap(mem))
	anon, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	must(err)
	for i := 0; i < len(anon); i += 4096 {
		anon[i] = 1
	}
	say("forget it", unix.Madvise(anon, unix.MADV_DONTNEED))
	fmt.Println("forgotten:", anon[0] == 0)
}

// locks has two processes want one file.
func locks([]string) {
	fd, err := unix.Open("lock", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	must(err)
	say("flock", unix.Flock(fd, unix.LOCK_EX))
	l := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
	say("record lock", unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &l))
	must(self("child", "flock", "lock").Run())
	say("give it back", unix.Flock(fd, unix.LOCK_UN))
	l.Type = unix.F_UNLCK
	say("give the record back", unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &l))
	must(self("child", "flock", "lock").Run())
}

// attributes sets what hangs on a file besides its contents.
func attributes([]string) {
	write("f", "text")
	say("set an attribute", unix.Setxattr("f", "user.work", []byte("value"), 0))
	buf := make([]byte, 100)
	n, err := unix.Getxattr("f", "user.work", buf)
	say("get it", err)
	fmt.Printf("%q\n", buf[:max(n, 0)])
	say("remove it", unix.Removexattr("f", "user.work"))
	_, err = unix.Getxattr("f", "user.work", buf)
	say("get none", err)
	say("chmod", unix.Chmod("f", 0o604))
	say("chmod none", unix.Chmod("none", 0o604))
	say("chown to nobody in particular", unix.Chown("f", -1, -1))
	ts := []unix.Timespec{{Sec: 1, Nsec: 2}, {Sec: 3, Nsec: 4}}
	say("times", unix.UtimesNanoAt(unix.AT_FDCWD, "f", ts, 0))
	var st unix.Statx_t
	must(unix.Statx(unix.AT_FDCWD, "f", 0, unix.STATX_ALL, &st))
	fmt.Println(st.Mtime.Sec, st.Mtime.Nsec, st.Size, st.Mode)
	say("access", unix.Faccessat2(unix.AT_FDCWD, "f", unix.R_OK|unix.W_OK, unix.AT_EACCESS))
	say("access to none", unix.Access("none", unix.F_OK))
	var fs unix.Statfs_t
	say("statfs", unix.Statfs(".", &fs))
	fmt.Println("writable:", fs.Flags&unix.ST_RDONLY == 0, "room:", fs.Bavail > 0)
}

// watch sees what happens in a directory.
func watch([]string) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(err)
	_, err = unix.InotifyAddWatch(fd, ".", unix.IN_CREATE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_CLOSE_WRITE)
	must(err)
	touch("a")
	must(unix.Mkdir("d", 0o755))
	must(unix.Rename("a", "b"))
	must(unix.Symlink("b", "l"))
	must(unix.Link("b", "h"))
	must(unix.Unlink("b"))
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	must(err)
	for at := 0; at < n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
		text := buf[at+unix.SizeofInotifyEvent : at+unix.SizeofInotifyEvent+int(e.Len)]
		fmt.Printf("%#x %s\n", e.Mask, bytes.TrimRight(text, "\x00"))
		at += unix.SizeofInotifyEvent + int(e.Len)
	}
}

// renames moves over what is there.
func renames([]string) {
	write("a", "a")
	write("b", "b")
	say("over a file", unix.Rename("a", "b"))
	must(os.MkdirAll("d/in", 0o755))
	must(os.Mkdir("e", 0o755))
	say("a directory over an empty one", unix.Rename("d", "e"))
	must(os.Symlink("b", "l"))
	say("over a link", unix.Rename("b", "l"))
	must(os.Link("l", "h"))
	say("over its other name", unix.Rename("l", "h"))
	say("without replacing", unix.Renameat2(unix.AT_FDCWD, "h", unix.AT_FDCWD, "n", unix.RENAME_NOREPLACE))
	say("into a directory", unix.Rename("n", "e/n"))
	say("out of it", unix.Rename("e/n", "n2"))
	say("a directory up", unix.Rename("e/in", "in"))
	fd, err := unix.Open("n2", unix.O_RDWR, 0)
	must(err)
	touch("n3")
	must(unix.Rename("n3", "n2"))
	_, err = unix.Write(fd, []byte("x"))
	say("write to what was replaced", err)
	entries, err := os.ReadDir(".")
	must(err)
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, e := range entries {
		fmt.Println(e.Name(), e.Type())
	}
}
