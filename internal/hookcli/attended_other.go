//go:build !linux

package hookcli

import "os"

// attended reports whether this hook, and so the agent that called it, has a
// terminal. Where it is wrong the agent does not ask, and denies.
func attended() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}
