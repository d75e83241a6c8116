// Package lint breaks every ban of .golangci.yml once; see
// scripts/lint-selftest.
package lint

import (
	"fmt"
	"io/ioutil" // want: io/ioutil
	"log"       // want: slog
	"math/rand" // want: math/rand
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

type config struct{}

func (c config) BestEffort() config { return c }

func bans(err error) (any, error) {
	f, err2 := os.Create("x")                // want: symlink
	cmd := exec.Command("x")                 // want: sandbox
	env := os.Getenv("X")                    // want: environment
	_, ok := os.LookupEnv("X")               // want: environment
	all := os.Environ()                      // want: environment
	now := time.Now()                        // want: clock
	conn, err3 := net.Dial("tcp", "x:1")     // want: egress
	d := net.Dialer{}                        // want: egress
	client := http.DefaultClient             // want: egress
	resp, err4 := http.Get("http://x")       // want: egress
	gone := os.IsNotExist(err)               // want: errors.Is
	weak := config{}.BestEffort()            // want: enforcement
	fmt.Println("x")                         // want: cli
	println("x")                             // want: cli
	same := err == os.ErrNotExist            // want: errors.Is
	wrapped := fmt.Errorf("failed: %v", err) // fine: wrapping is API and not always wanted
	log.SetOutput(ioutil.Discard)
	n := rand.Int()
	return []any{f, cmd, env, ok, all, now, conn, d, client, resp, gone, weak, same, n, err2, err3, err4}, wrapped
}

var _ = bans
