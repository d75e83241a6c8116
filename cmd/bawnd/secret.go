package main

import (
	"os"

	"github.com/bawn-dev/bawn/internal/vaultcli"
)

// runSecret is "bawn secret".
func runSecret(args []string) int {
	dir, _ := os.Getwd() // "": relative paths are refused
	return vaultcli.Main(args, &vaultcli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir,
	})
}
