package docker

import "github.com/bawn-dev/bawn/internal/linux/landlock"

// landlockABI is the kernel's version of Landlock, or 0.
func landlockABI() int {
	abi, err := landlock.ABI()
	if err != nil {
		return 0
	}
	return abi
}
