package tree_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// guest does one thing inside, and says what came of it in a line that begins
// with "yes" or "no".
func guest(words []string) int {
	do, ok := map[string]func([]string) error{"get": get, "swap": swap, "proxy": proxy, "variable": variable}[words[0]]
	if !ok {
		fmt.Println("no: the guest does not know", words)
		return 2
	}
	if err := do(words[1:]); err != nil {
		fmt.Println("no:", strings.ReplaceAll(err.Error(), "yes", "y"))
		return 1
	}
	fmt.Println("yes")
	return 0
}

func variable(words []string) error {
	if os.Getenv(words[0]) == "" {
		return fmt.Errorf("%s is not set", words[0])
	}
	return nil
}

func get(words []string) error {
	c := http.Client{Timeout: 20 * time.Second}
	r, err := c.Get(words[0])
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && string(text) != "hello" {
		return fmt.Errorf("%.80q", text)
	}
	return err
}

// proxy asks the relay's proxy for a connection and writes what it says.
func proxy(words []string) error {
	c, err := net.DialTimeout("tcp", "127.0.0.1:61128", 20*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", words[0])
	said := make([]byte, 64)
	n, err := c.Read(said)
	fmt.Printf("%s\n", said[:n])
	return err
}

// swap exchanges two names until a third one exists.
func swap(words []string) error {
	for {
		if err := unix.Renameat2(unix.AT_FDCWD, words[0], unix.AT_FDCWD, words[1], unix.RENAME_EXCHANGE); err != nil {
			return err
		}
		if _, err := os.Lstat(words[2]); err == nil {
			return nil
		}
	}
}
