//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command bawn runs AI coding agents as guests on this machine.
package main

import (
	"os"

	_ "github.com/bawn-dev/bawn/cmd/bawn/first" // does its work when it is initialised
	"github.com/bawn-dev/bawn/internal/cli"
	"github.com/bawn-dev/bawn/internal/launch"
	_ "github.com/bawn-dev/bawn/internal/stdlog" // nothing that libraries print reaches the terminal
)

func main() {
	args, code := launch.AsPart(os.Args)
	if args == nil {
		os.Exit(code)
	}
	os.Exit(cli.Main(args, launch.OwnEnv(nil)))
}
