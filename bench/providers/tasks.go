package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// Measures, in the order of the report.
const (
	cold  = "cold session"
	warm  = "command in a running session"
	build = "200 MB build"
	files = "10,000 small files"
)

var measures = []string{cold, warm, build, files}

// tasks are what -task does: what is there before, and what is timed.
var tasks = map[string]struct{ before, work func(dir string) error }{
	"build": {writeSources, compile},
	"files": {func(string) error { return nil }, smallFiles},
}

// doTask does the work in a new directory below dir and prints how long that
// took: the start of the session is not part of it.
func doTask(name, dir string, out io.Writer) error {
	t, ok := tasks[name]
	if !ok {
		return fmt.Errorf("unknown task %q", name)
	}
	dir, err := os.MkdirTemp(dir, "task-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := t.before(dir); err != nil {
		return err
	}
	began := time.Now()
	if err := t.work(dir); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(measure.Sample{Wall: time.Since(began)})
}

// A build reads 200 sources, writes 200 objects of half a megabyte each, and
// links them into one program. In all it writes 200 MB.
const (
	sources    = 200
	sourceSize = 512 << 10
)

func source(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("source-%d", i)) }
func object(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("object-%d", i)) }

func writeSources(dir string) error {
	text := make([]byte, sourceSize)
	for i := range sources {
		sum := sha256.Sum256([]byte{byte(i)})
		for at := 0; at < len(text); at += len(sum) {
			copy(text[at:], sum[:])
		}
		if err := os.WriteFile(source(dir, i), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// compile is deterministic and does the same everywhere.
func compile(dir string) error {
	program, err := os.OpenFile(filepath.Join(dir, "program"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	for i := range sources {
		text, err := os.ReadFile(source(dir, i))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		for at := range text {
			text[at] ^= sum[at%len(sum)]
		}
		if err := os.WriteFile(object(dir, i), text, 0o600); err != nil {
			return err
		}
	}
	for i := range sources {
		text, err := os.ReadFile(object(dir, i))
		if err != nil {
			return err
		}
		if _, err := program.Write(text); err != nil {
			return err
		}
	}
	return program.Close()
}

const (
	directories = 100
	inEach      = 100
)

// smallFiles makes, looks at, reads and removes files of 1,000 bytes.
func smallFiles(dir string) error {
	text := make([]byte, 1000)
	name := func(i int) string {
		return filepath.Join(dir, fmt.Sprintf("d%d", i/inEach), fmt.Sprintf("f%d", i%inEach))
	}
	for i := range directories {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("d%d", i)), 0o700); err != nil {
			return err
		}
	}
	for _, step := range []func(string) error{
		func(p string) error { return os.WriteFile(p, text, 0o600) },
		func(p string) error { _, err := os.Stat(p); return err },
		func(p string) error { _, err := os.ReadFile(p); return err },
		os.Remove,
	} {
		for i := range directories * inEach {
			if err := step(name(i)); err != nil {
				return err
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "d*", "f*")); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%d files are left", len(left)))
	}
	return nil
}
