package audit

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func init() { children["later"] = childLater }

// childLater leaves n events to be written later, and does nothing more until
// it is killed.
func childLater(dir string, n int) error {
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	for i := range n {
		if err := l.Later(event(fmt.Sprintf("/%d", i))); err != nil {
			return err
		}
	}
	time.Sleep(time.Minute)
	return nil
}

func later(t *testing.T, l *Log, resources ...string) {
	t.Helper()
	for _, r := range resources {
		if err := l.Later(event(r)); err != nil {
			t.Fatal(err)
		}
	}
}

// became waits until the log holds n records.
func became(t *testing.T, dir string, n int) {
	t.Helper()
	testenv.Until(t, fmt.Sprint(n, " records in the log"), func() bool { return verify(t, dir).Records == uint64(n) })
}

// What waits is written before what comes after it, and by the same write.
func TestLaterKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir() + "/audit"
		l := openLog(t, dir, Options{})
		put(t, l, event("/1"))
		later(t, l, "/2", "/3")
		put(t, l, event("/4"))
		later(t, l, "/5")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := resources(Query(dir, Filter{})); got != "/1 /2 /3 /4 /5" {
			t.Errorf("the log holds %q", got)
		}
		wantClean(t, dir, 5)
		if err := l.Later(event("/6")); err == nil {
			t.Error("a closed log took an event")
		}
		time.Sleep(2 * laterWait) // what was to be written after a while has been
		wantClean(t, dir, 5)
	})
}

// What waits is written after a while, and when too much does, whatever follows;
// kill -9 takes nothing of it back.
func TestLaterIsWrittenSoon(t *testing.T) {
	for _, n := range []int{3, 2*maxLater + 3} {
		dir := t.TempDir() + "/audit"
		cmd := startChild(t, "later", dir, n)
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // else a failure would take as long as it sleeps
		testenv.Until(t, "the log", func() bool { return logSize(dir) > 0 })
		became(t, dir, n)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // was killed
		put(t, openLog(t, dir, Options{}), event("/after"))
		wantClean(t, dir, n+1)
	}
}

// A log that can't write the waiting events refuses decisions too. It loses no
// event while it has room, and reports once that it has no more room.
func TestLaterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newLog(t, 1)
		head := filepath.Join(dir, headName)
		whole := readFile(t, head)
		l := openLog(t, dir, Options{})
		writeFile(t, head, []byte("spoiled"))
		later(t, l, "/1", "/2")
		time.Sleep(2 * laterWait) // one attempt fails unseen
		if err := l.Record(context.Background(), event("/denied")); err == nil {
			t.Error("an event was recorded, though what waits could not be")
		}
		writeFile(t, head, whole)
		put(t, l, event("/3"))
		if got := resources(Query(dir, Filter{})); !strings.HasSuffix(got, "/1 /2 /3") {
			t.Errorf("the log holds %q", got)
		}

		path := filepath.Join(dir, logName)
		text := readFile(t, path)
		writeFile(t, path, append(text[:len(text):len(text)], "x\n"...))
		var err error
		for i := 0; err == nil && i < 2*maxLater; i++ {
			err = l.Later(event("/many"))
		}
		if err == nil || len(l.later) > maxLater {
			t.Fatalf("%v, and %d events wait; want at most %d", err, len(l.later), maxLater)
		}
		writeFile(t, path, text)
		if err := l.Record(context.Background(), event("/denied")); err == nil || !strings.Contains(err.Error(), "lost") {
			t.Errorf("after an event was lost: %v", err)
		}
		put(t, l, event("/4"))
		wantClean(t, dir, 1+3+maxLater+1)
		if ops := resources(Query(dir, Filter{})); strings.Contains(ops, "denied") {
			t.Error("an event that was refused is in the log")
		}
	})
}

// A crash in the middle of several records at once leaves whole ones, which
// stay, and one that is half, which is sealed.
func TestTornBatch(t *testing.T) {
	dir := newLog(t, 1)
	head := readFile(t, filepath.Join(dir, headName))
	l := openLog(t, dir, Options{})
	later(t, l, "/1", "/2", "/3")
	put(t, l, event("/4"))
	path := filepath.Join(dir, logName)
	text := readFile(t, path)
	writeFile(t, path, text[:bytes.LastIndexByte(text[:len(text)-1], '\n')-20]) // in /3
	writeFile(t, filepath.Join(dir, headName), head)
	put(t, openLog(t, dir, Options{}), event("/5"))
	if got, want := operations(t, dir), "read read repair seal read"; !strings.HasSuffix(got, want) {
		t.Errorf("operations %q; want them to end in %q", got, want)
	}
	wantClean(t, dir, 1+2+2+1)
}
