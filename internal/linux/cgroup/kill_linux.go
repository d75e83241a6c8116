package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killWait is how long Kill goes on finding processes to kill.
const killWait = 2 * time.Second

// Kill ends every process in g with SIGKILL and returns when none is left,
// or an error after two seconds. It uses cgroup.kill (Linux 5.14); before
// that, and in version 1, it stops g from growing (cgroup.freeze, pids.max)
// and signals what it finds until it finds nothing. A group that has been
// killed is good for nothing but Stats and Remove.
func (g *Group) Kill() error {
	deadline := time.Now().Add(killWait)
	var errs []error
	for _, d := range g.dirs {
		errs = append(errs, d.kill(deadline))
	}
	return errors.Join(errs...)
}

func (d dir) kill(deadline time.Time) error {
	if d.version == 2 {
		err := d.write("cgroup.kill", "1")
		if errors.Is(err, unix.ENOENT) {
			err = d.write("cgroup.freeze", "1")
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	} else if slices.Contains(d.has, pids) {
		if err := d.write("pids.max", "0"); err != nil {
			return err
		}
	}
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		left, err := d.signalAll()
		if err != nil || left == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes in %q have not ended after SIGKILL", left, d.path)
		}
		time.Sleep(wait)
	}
}

// signalAll sends SIGKILL to every process in d and returns how many were
// there. A number is signalled through a descriptor, and only if the group
// still lists it afterwards: by then the descriptor can't mean a stranger who
// got the number meanwhile.
func (d dir) signalAll() (int, error) {
	list, err := d.processes()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	fds, err := openProcesses(list)
	defer closeAll(fds)
	if err != nil {
		return len(list), err
	}
	list, err = d.processes()
	for _, pid := range list {
		if fd, ok := fds[pid]; ok {
			err = errors.Join(err, killFD(fd))
		}
	}
	return len(list), err
}

// openProcesses returns a descriptor of each process that still exists.
func openProcesses(list []int) (map[int]int, error) {
	fds := make(map[int]int, len(list))
	for _, pid := range list {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fds, fmt.Errorf("pidfd_open %d: %w", pid, err)
		}
		fds[pid] = fd
	}
	return fds, nil
}

func closeAll(fds map[int]int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func killFD(fd int) error {
	err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// processes lists the processes in d. A removed group has none.
func (d dir) processes() ([]int, error) {
	text, err := d.read("cgroup.procs")
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := parsePIDs(text)
	if err == nil && slices.Contains(list, 0) {
		return nil, fmt.Errorf("%q holds a process of another pid namespace, which can't be signalled", d.path)
	}
	return list, err
}

// Stats reads what g has used. It works until Remove, also after Kill.
func (g *Group) Stats() (Stats, error) {
	var s Stats
	var errs []error
	for _, d := range g.dirs {
		if slices.Contains(d.has, memory) {
			errs = append(errs, d.memoryStats(&s))
		}
		if slices.Contains(d.has, pids) {
			n, err := d.counter("pids.events", "max")
			s.PIDsMaxHits = n
			errs = append(errs, err)
		}
	}
	return s, errors.Join(errs...)
}

func (d dir) memoryStats(s *Stats) error {
	eventsFile := "memory.events"
	if d.version == 1 {
		eventsFile = "memory.oom_control"
	}
	kills, err := d.counter(eventsFile, "oom_kill")
	s.OOMKills = kills
	if kills == 0 { // then nobody asks why, and it takes six files to know
		return err
	}
	full, err2 := d.memoryFull()
	s.MemoryFull = full
	return errors.Join(err, err2)
}

// batch is more than the kernel asks a limit for at once before it looks for
// a process to kill: 64 pages of 4 KiB.
const batch = 256 << 10

// memoryFull reports whether the limit of d itself has refused memory. Version
// 2 says so. Version 1 counts refusals (not in Linux 6.18, where the counter
// stays 0) and keeps the largest use, which is then next to the limit.
func (d dir) memoryFull() (bool, error) {
	if d.version == 2 {
		n, err := d.counter("memory.events", "oom")
		return n > 0, err
	}
	for _, kind := range []string{"memory.", "memory.memsw."} {
		refused, err1 := limitFile(path.Join(d.path, kind+"failcnt"), parseCount)
		most, err2 := limitFile(path.Join(d.path, kind+"max_usage_in_bytes"), parseMax)
		limit, err3 := limitFile(path.Join(d.path, kind+"limit_in_bytes"), parseMax)
		if err := errors.Join(err1, err2, err3); err != nil {
			return false, err
		}
		if refused > 0 || limit > 0 && most > limit-batch {
			return true, nil
		}
	}
	return false, nil
}

func (d dir) counter(file, key string) (int64, error) {
	text, err := d.read(file)
	if err != nil {
		return 0, err
	}
	n, err := parseCounter(text, key)
	if err != nil {
		return 0, fmt.Errorf("%s of %q: %w", file, d.path, err)
	}
	return n, nil
}
