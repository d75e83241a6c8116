package supervise

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// await covers new files at a place, and returns once the whole way to every
// place has to be looked at again.
func (k *refresher) await() error {
	if k.nudges != nil {
		return k.awaitNudge()
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := k.events.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what inotify tells: %w", err)
		}
		if again, err := k.react(buf[:n]); again || err != nil {
			return err
		}
	}
}

// react deals with a batch of events (inotify(7)). It reports whether more may
// have changed than the file at a place.
func (k *refresher) react(events []byte) (again bool, err error) {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events))
		size := int(binary.NativeEndian.Uint32(events[12:]))
		events = events[unix.SizeofInotifyEvent:]
		name, _, _ := bytes.Cut(events[:min(size, len(events))], []byte{0})
		events = events[min(size, len(events)):]
		again = again || wd == -1 // events were lost
		for _, dir := range k.watched[wd] {
			more, err := k.changed(dir, string(name))
			if err != nil {
				return true, err
			}
			again = again || more
		}
	}
	return again, nil
}

// changed deals with one name in a directory. No name stands for the directory
// itself.
func (k *refresher) changed(dir, name string) (again bool, err error) {
	p := path.Join(dir, name)
	switch {
	case name == "":
		return true, nil
	case !slices.Contains(k.names[dir], name):
		return false, nil
	case !k.ends[p]:
		return true, nil
	}
	err = k.cover(k.dirs[dir], p)
	if err == errLink {
		return true, nil
	}
	return k.through[p], err
}
