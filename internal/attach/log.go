package attach

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// LogLimit is how many bytes of a session's output are kept, at most: two files
// of half as many.
const LogLimit = 4 << 20

// An outputLog writes a session's output, of which it keeps the end.
type outputLog struct {
	dir  string
	fd   int
	size int
	half int
}

func openLog(dir string) (*outputLog, error) {
	fd, err := openFile(filepath.Join(dir, logName), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_APPEND)
	if err != nil {
		return nil, err
	}
	return &outputLog{dir: dir, fd: fd, half: LogLimit / 2}, nil
}

// write writes b. Where that fails (no room is left) the session goes on
// without a log.
func (l *outputLog) write(b []byte) {
	if l == nil || l.fd < 0 || len(b) == 0 {
		return
	}
	n, err := unix.Write(l.fd, b)
	if l.size += n; err != nil || l.size >= l.half && l.turn() != nil {
		l.close()
	}
}

// turn begins another file.
func (l *outputLog) turn() error {
	path := filepath.Join(l.dir, logName)
	if err := os.Rename(path, filepath.Join(l.dir, olderLogName)); err != nil {
		return err
	}
	next, err := openLog(l.dir)
	if err != nil {
		return err
	}
	unix.Close(l.fd)
	l.fd, l.size = next.fd, 0
	return nil
}

func (l *outputLog) close() {
	if l != nil && l.fd >= 0 {
		unix.Close(l.fd)
		l.fd = -1
	}
}

// A LogReader reads the output of a hosted session of the registry below Dir,
// as far as it is kept.
type LogReader struct {
	Dir, ID string
	// Lines is how many lines to begin with, counted from the end; 0 for all.
	Lines int
	// Follow waits for more until the session has ended.
	Follow bool
}

// followEvery is how often a reader that follows looks for more.
const followEvery = 100 * time.Millisecond

// Copy writes the output to w until its end, or ctx's. Where the session keeps no
// output the error is fs.ErrNotExist.
func (r LogReader) Copy(ctx context.Context, w io.Writer) error {
	if !validID(r.ID) {
		return fs.ErrNotExist
	}
	dir := filepath.Join(r.Dir, sessionsName, r.ID)
	older, current, err := openLogs(dir)
	if err != nil {
		return err
	}
	defer func() { current.Close() }()
	err = r.begin(w, older, current)
	for err == nil && r.Follow {
		alive, _ := locked(dir) // one that was removed has ended
		var turned bool
		if current, turned, err = follow(dir, current, w); err != nil || turned {
			continue
		}
		if !alive {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
	return err
}

// openLogs opens both files, of which older may be nil. It looks twice, since
// one becomes the other meanwhile.
func openLogs(dir string) (older, current *os.File, err error) {
	for range 10 {
		if current, err = os.Open(filepath.Join(dir, logName)); err != nil {
			return nil, nil, err
		}
		older, err = os.Open(filepath.Join(dir, olderLogName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if same(current, filepath.Join(dir, logName)) {
			return older, current, nil
		}
		older.Close()
		current.Close()
	}
	return nil, nil, errors.Join(err, errors.New("the output is written too fast to be opened"))
}

// same reports whether path still names f.
func same(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// begin copies the log, or its last lines.
func (r LogReader) begin(w io.Writer, older, current *os.File) error {
	var all io.Reader = current
	if older != nil {
		defer older.Close()
		all = io.MultiReader(older, current)
	}
	if r.Lines <= 0 {
		_, err := io.Copy(w, all)
		return err
	}
	text, err := io.ReadAll(io.LimitReader(all, 2*LogLimit))
	if err == nil {
		_, err = w.Write(lastLines(text, r.Lines))
	}
	return err
}

// lastLines returns the end of text with n lines; text after the last line's
// end is one.
func lastLines(text []byte, n int) []byte {
	i := len(text)
	if i > 0 && text[i-1] == '\n' {
		i--
	}
	for ; i > 0; i-- {
		if text[i-1] == '\n' {
			if n--; n == 0 {
				break
			}
		}
	}
	return text[i:]
}

// follow copies added text, and goes over to the next file if there is one.
func follow(dir string, current *os.File, w io.Writer) (*os.File, bool, error) {
	turned := !same(current, filepath.Join(dir, logName)) // seen before the rest is read
	if _, err := io.Copy(w, current); err != nil || !turned {
		return current, false, err
	}
	next, err := os.Open(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) { // swept meanwhile, or about to be made
		return current, false, nil
	}
	if err != nil {
		return current, false, err
	}
	current.Close()
	return next, true, nil
}
