//go:build !cgo

package rawproc

// threadsOfLibc says that a C library may have made this process's threads.
const threadsOfLibc = false
