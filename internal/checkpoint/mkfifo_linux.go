package checkpoint

import "golang.org/x/sys/unix"

func mkfifo(fd int, name string) error { return unix.Mkfifoat(fd, name, 0o600) }
