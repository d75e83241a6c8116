package main

import (
	"os"

	"github.com/bawn-dev/bawn/internal/vaultcli"
	"github.com/bawn-dev/bawn/internal/verb"
)

// runSecret is "bawn secret".
func runSecret(args []string) int {
	dir, _ := os.Getwd() // "": relative paths are refused
	return vaultcli.Main(args, &vaultcli.Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir}})
}
