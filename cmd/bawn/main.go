//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command bawn runs AI coding agents as guests on this machine.
package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/bawn-dev/bawn/internal/cli"
)

func main() {
	// Bawn waits, mostly. With more processors the runtime would wake another
	// thread for each goroutine that could run, which costs more than it runs.
	runtime.GOMAXPROCS(1)
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // so that ".." leads where the kernel goes
	}
	if err != nil {
		dir = "" // it was removed; not everything needs one
	}
	os.Exit(cli.Main(os.Args[1:], &cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir,
	}))
}
