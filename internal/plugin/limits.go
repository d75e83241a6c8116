package plugin

// limits reads the limits, each in its range.
func (c *checker) limits(l limits) {
	if l.Memory != nil {
		c.m.Limits.MemoryMB = c.size("limits.memory", *l.Memory, 16<<20, 1<<40) >> 20
	}
	if l.Result != nil {
		c.m.Limits.ResultBytes = c.size("limits.result", *l.Result, 1<<10, 64<<20)
	}
	if l.PIDs != nil {
		c.m.Limits.PIDs = between(c, "limits.pids", *l.PIDs, 1, 1<<16)
	}
	if l.CPU != nil {
		c.m.Limits.CPUs = between(c, "limits.cpu", *l.CPU, 0.01, 1024)
	}
	if l.CallsAtOnce != nil {
		c.m.Limits.CallsAtOnce = int(between(c, "limits.calls_at_once", *l.CallsAtOnce, 1, 1024))
	}
	if l.Time != nil {
		d, err := duration(*l.Time)
		if err != nil {
			c.refuse("limits.time", "%v", err)
		}
		c.m.Limits.Time = d
	}
}

// size reads an amount from low to high, in bytes.
func (c *checker) size(key, text string, low, high int64) int64 {
	n, err := size(text)
	switch {
	case err != nil:
		c.refuse(key, "%v", err)
	case n < low || n > high:
		c.refuse(key, "%q is refused; want %s to %s", cut(text), amount(low), amount(high))
	}
	return n
}

// between wants a number from low to high; it refuses NaN.
func between[T int64 | float64](c *checker, key string, n, low, high T) T {
	if !(low <= n && n <= high) {
		c.refuse(key, "%v is refused; want %v to %v", n, low, high)
	}
	return n
}
