//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command bawn runs AI coding agents as guests on this machine.
package main

import (
	"fmt"
	"os"

	"github.com/bawn-dev/bawn/internal/cli"
)

func main() {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bawn: error: no working directory: %v\n", err)
		os.Exit(cli.ExitInternal)
	}
	os.Exit(cli.Main(os.Args[1:], &cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir,
	}))
}
