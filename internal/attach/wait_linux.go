package attach

import "golang.org/x/sys/unix"

// waitKeys waits until fd has something to read, or wake was closed at its
// other end: then it returns false.
func waitKeys(fd, wake int) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, -1)
	return fds[1].Revents == 0, err
}
