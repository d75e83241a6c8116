package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// guest does what the words say, each of the form WHAT=ARGUMENT, and says what
// came of it in a line that begins with "yes" or "no".
func guest(words []string) int {
	code := 0
	for _, w := range words {
		what, argument, _ := strings.Cut(w, "=")
		code = max(code, one([]string{what, argument}))
	}
	return code
}

func one(words []string) int {
	do, ok := map[string]func([]string) (string, error){
		"read": read, "write": write, "env": environ, "lookup": lookup, "memory": memory, "fork": fork, "burn": burn, "sleep": sleep,
	}[words[0]]
	if !ok {
		fmt.Println("no: the guest does not know", words)
		return 2
	}
	said, err := do(words[1:])
	if err != nil {
		fmt.Println("no:", err)
		return 1
	}
	fmt.Println("yes:", strings.ReplaceAll(said, "\n", " "))
	return 0
}

func read(words []string) (string, error) {
	if entries, err := os.ReadDir(words[0]); err == nil {
		return fmt.Sprint(len(entries)), nil
	}
	text, err := os.ReadFile(words[0])
	return string(text), err
}

func write(words []string) (string, error) {
	return "", os.WriteFile(words[0], []byte("written"), 0o600)
}

func environ(words []string) (string, error) {
	if v, ok := os.LookupEnv(words[0]); ok {
		return v, nil
	}
	return "", errors.New("it is not set")
}

func lookup(words []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, words[0])
	return fmt.Sprint(addrs), err
}

// memory takes that many MiB and touches each page.
func memory(words []string) (string, error) {
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return "", err
	}
	m, err := syscall.Mmap(-1, 0, n<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(m); i += 4096 {
		m[i] = 1
	}
	return "taken", nil
}

// fork starts that many processes and counts them.
func fork(words []string) (string, error) {
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return "", err
	}
	for i := range n {
		if err := exec.Command("/bin/sleep", "20").Start(); err != nil {
			return "", fmt.Errorf("after %d: %w", i, err)
		}
	}
	return "started", nil
}

// burn works for a second, and says how many milliseconds of processor time it
// got for it.
func burn([]string) (string, error) {
	end := time.Now().Add(time.Second)
	for time.Now().Before(end) {
		for range 1 << 16 {
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return "", err
	}
	return strconv.FormatInt((u.Utime.Nano()+u.Stime.Nano())/1e6, 10), nil
}

func sleep(words []string) (string, error) {
	d, err := time.ParseDuration(words[0])
	time.Sleep(d)
	return "slept", err
}
