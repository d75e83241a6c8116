package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sysvChecks reach for System V objects of the host, by key and by number.
func sysvChecks() []Check {
	get := func(nr int, args ...uintptr) func(fx Fixtures) error {
		return func(fx Fixtures) error { return rawErr(nr, append([]uintptr{uintptr(fx.SysVKey)}, args...)...) }
	}
	list := []Check{
		{Name: "A520", Why: "a shared memory segment by key", Do: get(unix.SYS_SHMGET, 0, 0)},
		{Name: "A521", Why: "attach a shared memory segment", Do: attachShared},
		{Name: "A522", Why: "a semaphore set by key", Do: get(unix.SYS_SEMGET, 0, 0)},
		{Name: "A523", Why: "a message queue by key", Do: get(unix.SYS_MSGGET, 0)},
		{Name: "A524", Why: "send to a message queue", Do: sendMessage},
		{Name: "A525", Why: "the list of shared memory segments", Do: listedIn("/proc/sysvipc/shm")},
		{Name: "A526", Why: "the list of semaphore sets", Do: listedIn("/proc/sysvipc/sem")},
		{Name: "A527", Why: "the list of message queues", Do: listedIn("/proc/sysvipc/msg")},
	}
	for i := range list {
		list[i].Want = []errno{unix.ENOENT, unix.EINVAL, unix.EACCES, unix.EPERM, unix.ENOSYS, nothing, killed}
		list[i].Unavailable = []errno{unix.ENOSYS}
	}
	return named("ipc", list)
}

func attachShared(fx Fixtures) error {
	id, e := raw(unix.SYS_SHMGET, uintptr(fx.SysVKey), 0, 0)
	if e != 0 {
		return e
	}
	return rawErr(unix.SYS_SHMAT, id, 0, unix.SHM_RDONLY)
}

func sendMessage(fx Fixtures) error {
	id, e := raw(unix.SYS_MSGGET, uintptr(fx.SysVKey), 0)
	if e != 0 {
		return e
	}
	return rawErr(unix.SYS_MSGSND, id, address(&[2]int64{1, 1}), 1, 0o4000)
}

// listedIn looks for the key in the first column.
func listedIn(p string) func(fx Fixtures) error {
	return func(fx Fixtures) error {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if fields := strings.Fields(s.Text()); len(fields) > 0 && fields[0] == itoa(fx.SysVKey) {
				return nil
			}
		}
		return nothing
	}
}

// posixChecks reach for POSIX objects of the host.
func posixChecks() []Check {
	want := []errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOSYS, nothing, killed}
	list := []Check{
		{Name: "E113", Why: "a message queue", Do: func(fx Fixtures) error {
			return rawErr(unix.SYS_MQ_OPEN, cstring(fx.Queue), unix.O_RDWR|unix.O_NONBLOCK, 0, 0)
		}},
		{Name: "A530", Why: "remove a message queue", Do: func(fx Fixtures) error { return rawErr(unix.SYS_MQ_UNLINK, cstring(fx.Queue)) }},
		{Name: "A531", Why: "shared memory in /dev/shm", Do: func(fx Fixtures) error { return readToken(filepath.Join("/dev/shm", fx.Shm), fx) }},
		{Name: "A532", Why: "the list of shared memory", Do: func(fx Fixtures) error { return listed("/dev/shm", fx.Shm) }},
	}
	for i := range list {
		list[i].Want, list[i].Unavailable = want, []errno{unix.ENOSYS, unix.ENOENT, nothing}
	}
	return named("ipc", list)
}

// keyChecks use the kernel's keyrings, which no namespace divides.
func keyChecks() []Check {
	session := int32(unix.KEY_SPEC_SESSION_KEYRING)
	list := []Check{
		{Name: "E110", Why: "add a key", Do: func(fx Fixtures) error {
			return rawErr(unix.SYS_ADD_KEY, cstring("user"), cstring(fx.ProbeName()), cstring("v"), 1, uintptr(unix.KEY_SPEC_PROCESS_KEYRING&(1<<32-1)))
		}},
		{Name: "A540", Why: "search for a key", Do: func(fx Fixtures) error {
			_, e := raw(unix.SYS_REQUEST_KEY, cstring("user"), cstring(fx.ProbeName()), 0, 0)
			return reached(e)
		}},
		{Name: "A541", Why: "the session's keyring", Do: func(Fixtures) error {
			_, e := raw(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, uintptr(session), 1)
			return reached(e)
		}},
		{Name: "A542", Why: "the user's keys", Do: func(Fixtures) error {
			user := int32(unix.KEY_SPEC_USER_KEYRING)
			_, e := raw(unix.SYS_KEYCTL, unix.KEYCTL_READ, uintptr(user), 0, 0)
			return reached(e)
		}},
	}
	for i := range list {
		list[i].Want, list[i].Unavailable = append([]errno{unix.EACCES}, callRefused...), []errno{unix.ENOSYS}
	}
	return named("ipc", list)
}
