package sessionsocket

// short calls f with path: a name that is too long for an address is an error.
func short(path string, f func(name string) error) error { return f(path) }
