package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// writeLicences writes the licence texts and notices of modules, and of Go itself. A
// module without one is an error: its licence would demand that it goes along.
func writeLicences(w io.Writer, modules io.Reader, goroot string) error {
	if _, err := io.WriteString(w, "Bawn's programs are linked statically. Their parts and the licences of these:\n"); err != nil {
		return err
	}
	if err := writeLicence(w, "Go's standard library", goroot); err != nil {
		return err
	}
	n, lines := 0, bufio.NewScanner(modules)
	for ; lines.Scan(); n++ {
		words := strings.SplitN(lines.Text(), " ", 3) // the directory may hold blanks
		if len(words) != 3 || words[2] == "" {
			return fmt.Errorf("%q is no module; want PATH VERSION DIR", lines.Text())
		}
		if err := writeLicence(w, words[0]+" "+words[1], words[2]); err != nil {
			return err
		}
	}
	if n == 0 {
		return fmt.Errorf("no module was named")
	}
	return lines.Err()
}

func writeLicence(w io.Writer, name, dir string) error {
	var files []string
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no licence file in %q", name, dir)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 78), name, filepath.Base(file), strings.TrimSpace(string(text))); err != nil {
			return err
		}
	}
	return nil
}
