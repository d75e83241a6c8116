package supervise

// For tests of the providers, which look at it and break it.

// Remembered counts the supervisor's state of the guest: its git directories,
// their mounts and its sockets.
func (s *Supervision) Remembered() (made, mounted, bound int) {
	return len(s.super.pool.made), len(s.super.git.ids), len(s.super.sockets.bound)
}

// ToldByInotify reports whether inotify tells the refresher of changes by now.
func (s *Supervision) ToldByInotify() bool {
	s.refresher.lock.Lock()
	defer s.refresher.lock.Unlock()
	return s.refresher.events != nil
}

// LoseGuest takes the refresher's way into the guest's mounts away.
func (s *Supervision) LoseGuest() error { return s.refresher.mount.Close() }
