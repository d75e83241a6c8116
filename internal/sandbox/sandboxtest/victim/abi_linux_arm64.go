package main

// portCalls is empty: this architecture has no I/O ports.
func portCalls() []call { return nil }

// abiChecks is empty: a 64-bit process can't call by the 32-bit table here.
func abiChecks() []Check { return nil }
