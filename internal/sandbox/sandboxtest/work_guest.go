package sandboxtest

// guestPieces are done by the program workguest, call by call.
func guestPieces() (pieces []workPiece) {
	const setgid = `mkdir setgid; chmod 2775 setgid`
	for _, name := range []string{
		"errors", "slashes", "links", "dirfds", "magic", "descriptors", "renames", "exclusive", "tmpfile", "sparse", "mmap", "locks",
		"attributes", "watch", "sockets", "abstract", "network", "passing", "storm", "many", "interrupted", "threads", "killed",
		"replace", "calls", "directory-per-thread", "removed-directory",
	} {
		pieces = append(pieces, workPiece{name: "calls: " + name, script: `exec "$SHELF/workguest" ` + name})
	}
	for _, umask := range []string{"022", "0", "077"} {
		pieces = append(pieces, workPiece{name: "calls: modes with umask " + umask, setup: setgid, script: "umask " + umask + `; exec "$SHELF/workguest" modes`})
	}
	return append(pieces,
		workPiece{name: "calls: interrupted without restart", needs: []string{"python3"}, script: interruptedScript, chance: true},
	)
}

// interruptedScript calls libc directly, with signal handlers that do not ask
// for a restart. Python's own functions would hide an EINTR, or a call that was
// carried out and then reported as interrupted.
const interruptedScript = `mkdir x; python3 - <<'EOT'
import collections, ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True); seen = collections.Counter()
def on(*_): seen["signals"] += 1
signal.signal(signal.SIGALRM, on); signal.siginterrupt(signal.SIGALRM, True); signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
def call(name, *args):
    ctypes.set_errno(0)
    r = getattr(libc, name)(*args)
    if r < 0: seen[name + " " + os.strerror(ctypes.get_errno())] += 1
    return r
for i in range(500):
    n = b"x/%d" % i
    fd = call("open", n, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
    if fd >= 0: os.close(fd)
    call("mkdir", n + b"d", 0o755); call("rename", n, n + b"r"); call("symlink", n, n + b"l"); call("link", n + b"r", n + b"h")
signal.setitimer(signal.ITIMER_REAL, 0)
print(seen.pop("signals") > 10, dict(seen), len(os.listdir("x")))
EOT
rm -r x`
