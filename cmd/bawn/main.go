//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command bawn runs AI coding agents as guests on this machine.
package main

import (
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/cli"
)

func main() {
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
