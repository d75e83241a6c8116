//go:build cgo

package rawproc

// threadsOfLibc says that a C library may have made this process's threads
// (package net alone is enough to link it).
const threadsOfLibc = true
