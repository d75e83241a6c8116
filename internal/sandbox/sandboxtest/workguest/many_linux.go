package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exclusive has several processes want the same new name; one gets it.
func exclusive([]string) {
	wins := 0
	for i := range 25 {
		var running []*exec.Cmd
		for range 4 {
			cmd := self("child", "exclusive", fmt.Sprintf("lock%d", i))
			must(cmd.Start())
			running = append(running, cmd)
		}
		for _, cmd := range running {
			if cmd.Wait() == nil {
				wins++
			}
		}
	}
	fmt.Println("wins:", wins)
}

const renamesEach = 400

// storm has four processes rename in one directory.
func storm([]string) {
	var running []*exec.Cmd
	for i := range 4 {
		write(fmt.Sprintf("own%d", i), strconv.Itoa(i))
		must(os.Mkdir(fmt.Sprintf("dir%d", i), 0o755))
		cmd := self("child", "rename", strconv.Itoa(i))
		must(cmd.Start())
		running = append(running, cmd)
	}
	for _, cmd := range running {
		must(cmd.Wait())
	}
	list()
}

// renameForever renames its own file and directory to and fro, and over a file
// that all share.
func renameForever(id string) {
	a, b := "own"+id, "other"+id
	for range renamesEach / 2 {
		must(unix.Rename(a, b))
		must(unix.Rename(b, "dir"+id+"/"+b))
		must(unix.Rename("dir"+id, "moved"+id))
		must(unix.Rename("moved"+id, "dir"+id))
		must(unix.Rename("dir"+id+"/"+b, a))
		touch("new" + id)
		must(unix.Rename("new"+id, "shared"))
	}
}

// many makes, looks at and removes thousands of files.
func many([]string) {
	const files, perDir = 3_000, 500
	made, size := 0, int64(0)
	for i := range files {
		dir := fmt.Sprintf("m/%d", i/perDir)
		if i%perDir == 0 {
			must(os.MkdirAll(dir, 0o755))
		}
		must(open(fmt.Sprintf("%s/%d", dir, i), create|unix.O_EXCL, 0o644))
		made++
	}
	must(filepath.WalkDir("m", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size() + 1
		return err
	}))
	must(os.RemoveAll("m"))
	fmt.Println("made", made, "seen", size)
}

// interrupted works under a rain of signals.
func interrupted([]string) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGALRM)
	var signals atomic.Int64
	go func() {
		for range got {
			signals.Add(1)
		}
	}()
	stop := make(chan bool)
	go rain(stop)
	for i := range 500 {
		name := fmt.Sprintf("i%d", i)
		must(open(name, create|unix.O_EXCL, 0o600))
		must(unix.Mkdir(name+"d", 0o700))
		must(unix.Rename(name, name+"r"))
		must(unix.Symlink(name, name+"l"))
		must(unix.Link(name+"r", name+"h"))
		for _, s := range []string{"r", "l", "h"} {
			must(unix.Unlink(name + s))
		}
		must(unix.Rmdir(name + "d"))
	}
	close(stop)
	fmt.Println("signals came:", signals.Load() > 5)
	list()
}

// rain sends this process signals until it is told to stop.
func rain(stop chan bool) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(300 * time.Microsecond):
			must(unix.Kill(os.Getpid(), unix.SIGALRM))
		}
	}
}

// threads creates from many threads at once.
func threads([]string) {
	var wg sync.WaitGroup
	for i := range 48 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 20 {
				touch(fmt.Sprintf("t%d-%d", i, j))
				must(unix.Mkdir(fmt.Sprintf("t%d-%d.d", i, j), 0o755))
			}
		}()
	}
	wg.Wait()
	entries, err := os.ReadDir(".")
	must(err)
	fmt.Println(len(entries), "entries")
	for _, e := range entries {
		must(os.Remove(e.Name()))
	}
}

// killed ends processes in the middle of their calls; the others go on.
func killed([]string) {
	for i := range 30 {
		cmd := self("child", "create", fmt.Sprintf("k%d", i))
		must(cmd.Start())
		time.Sleep(time.Duration(i) * time.Millisecond / 4)
		must(cmd.Process.Kill())
		fmt.Println(cmd.Wait())
	}
	say("the others go on", open("alive", create, 0o644))
	entries, err := filepath.Glob("k*")
	must(err)
	for _, e := range entries {
		must(os.Remove(e))
	}
}

func createForever(name string) {
	for {
		touch(name)
		must(unix.Rename(name, name+"r"))
		must(unix.Unlink(name + "r"))
	}
}

// replace writes files as databases and editors do: beside, sync, rename.
func replace([]string) {
	for i := range 50 {
		f, err := os.CreateTemp(".", "new-*")
		must(err)
		_, err = fmt.Fprintln(f, "version", i)
		must(err)
		must(f.Sync())
		must(f.Close())
		must(os.Rename(f.Name(), "data"))
		d, err := os.Open(".")
		must(err)
		must(d.Sync())
		must(d.Close())
	}
	b, err := os.ReadFile("data")
	must(err)
	fmt.Printf("%s", b)
}
