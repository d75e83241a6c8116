package kernel

// A StartError says why a sandbox could not be made, and what to do.
type StartError struct {
	Err    error
	Remedy string
}

func (e *StartError) Error() string { return "can't make the sandbox: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
