package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// umaskProgram creates files from two threads and from children while one of them
// changes the umask, and prints the modes that are not what they have to be.
const umaskProgram = `import os, queue, threading, subprocess
n = 0
def made():
    global n
    n += 1
    name = "f%d" % n
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o666))
    os.mkdir(name + ".d", 0o777)
    return os.stat(name).st_mode & 0o777, os.stat(name + ".d").st_mode & 0o777
jobs, results = queue.Queue(), queue.Queue()
def work():
    while jobs.get(): results.put(made())
other = threading.Thread(target=work); other.start()
def elsewhere():
    jobs.put(1)
    return results.get()
def child():
    got = subprocess.run(["sh", "-c", "echo >c; stat -c %a c; rm c"], capture_output=True, text=True).stdout
    return int(got, 8)
wrong = []
for i in range(60):
    mask = (0o022, 0o077, 0, 0o027)[i % 4]
    os.umask(mask)
    want = 0o666 & ~mask, 0o777 & ~mask
    for who in (made, elsewhere, made, elsewhere):
        got = who()
        if got != want: wrong.append((i, who.__name__, oct(mask), got))
    if i % 20 == 0 and child() != want[0]: wrong.append((i, "child", oct(mask)))
jobs.put(0); other.join()
print("wrong:", wrong)
`

// A supervisor keeps umasks of threads: what it creates has the mode that the thread's
// umask says at that moment, whichever thread has changed it.
func TestUmaskIsOfTheMoment(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3")
	ws := workspace(t)
	if err := os.WriteFile(filepath.Join(ws, "u.py"), []byte(umaskProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	out, code, _ := script(t, ws, `python3 u.py; umask 077; for i in 1 2 3; do echo >s$i; (umask 0; echo >t$i); echo >u$i; done; stat -c %a s? t? u? | sort | uniq -c | xargs`)
	if strings.TrimSpace(out) != "wrong: []\n6 600 3 666" {
		t.Errorf("got %q, exit code %d", out, code)
	}
}
