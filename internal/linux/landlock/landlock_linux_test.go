package landlock

import "testing"

func TestHandledGrowsWithTheABI(t *testing.T) {
	cases := []struct {
		abi    int
		fs     uint64
		scoped uint64
		size   uintptr
	}{
		{0, 0, 0, 0}, {1, 1<<13 - 1, 0, 8}, {2, 1<<14 - 1, 0, 8}, {3, 1<<15 - 1, 0, 8}, {4, 1<<15 - 1, 0, 16},
		{5, 1<<16 - 1, 0, 16}, {6, 1<<16 - 1, 3, 24}, {7, 1<<16 - 1, 3, 24}, {11, 1<<16 - 1, 3, 24},
	}
	for _, c := range cases {
		a, size := Handled(c.abi)
		if a.FS != c.fs || a.Scoped != c.scoped || size != c.size || a.Net != 0 {
			t.Errorf("ABI %d: got %+v, %d bytes", c.abi, a, size)
		}
	}
}

func TestPathBeneathIsPacked(t *testing.T) {
	p := NewPathBeneath(ReadOnly)
	*p.FD() = 7
	if p[0] != ReadOnly || p[8] != 7 {
		t.Errorf("got %v", *p)
	}
}
