package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
)

// A Daily is a share of a log that several processes have together, so much a day: the
// hook of an agent outside of every session is a process for each call. How much the day
// has taken stands in a file. What can't be counted is not recorded.
type Daily struct {
	log   bawn.Recorder
	file  string
	bytes int64
	now   func() time.Time
}

// NewDaily returns a share of so many bytes a day, counted in a file that only its user
// may read or write, and that is made where it is missing.
func NewDaily(log bawn.Recorder, file string, bytes int64, now func() time.Time) *Daily {
	return &Daily{log, file, bytes, now}
}

// Record writes an event while the day has room. It errs as [Log.Record] does, when the
// day is full, and when the file can't be used.
func (d *Daily) Record(ctx context.Context, e bawn.Event) error {
	if err := d.take(ctx, size(e), 0); err != nil {
		return err
	}
	return d.log.Record(ctx, e)
}

// Room errs where the day has no room for any event, or the file can't be used: the guard
// does not tell a guest why it can't record.
func (d *Daily) Room(ctx context.Context) error { return d.take(ctx, 0, perEvent) }

// take counts n bytes where the day has room for them and for some more.
func (d *Daily) take(ctx context.Context, n, more int64) error {
	if err := d.count(ctx, n, more); err != nil {
		return fmt.Errorf("share of the audit log, %q: %w", d.file, err)
	}
	return nil
}

// count is take, while no other process counts.
func (d *Daily) count(ctx context.Context, n, more int64) error {
	f, err := openAt(unix.AT_FDCWD, d.file, d.file, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return err
	}
	defer f.Close() // and its lock
	if err := checkOurs(f, 0, 0o177); err != nil {
		return err
	}
	if err := lock(ctx, f, exclusive); err != nil {
		return err
	}
	today := d.now().UTC().Format(time.DateOnly)
	taken, err := takenOn(f, today)
	switch {
	case err != nil:
		return err
	case n+more > d.bytes-taken:
		return fmt.Errorf("the hooks of agents outside of sessions have taken their %d MiB of today; start the agent with \"bawn run\", or have your human remove the file", d.bytes>>20)
	}
	_, err = f.WriteAt(fmt.Appendf(nil, dayLine, today, taken+n), 0)
	return err
}

// dayLine is what the file holds: always as many bytes, so that one write replaces it.
const dayLine = "%s %020d\n"

// takenOn reads how much was taken on a day: nothing where the file speaks of another day.
func takenOn(f *os.File, today string) (int64, error) {
	buf := make([]byte, 64)
	n, err := f.ReadAt(buf, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	case n == 0:
		return 0, nil // it is new
	}
	day, number, _ := strings.Cut(strings.TrimSuffix(string(buf[:n]), "\n"), " ")
	_, err = time.Parse(time.DateOnly, day)
	taken, wrong := strconv.ParseInt(number, 10, 64)
	if err != nil || wrong != nil || taken < 0 {
		return 0, errors.New("it does not hold a day and a number; have your human remove it, and the day is counted anew")
	}
	if day != today {
		return 0, nil
	}
	return taken, nil
}
