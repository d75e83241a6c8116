package launch

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Sessions that start at the same moment in an empty home get one list, which
// stays the same file from the first of them on.
func TestKeepUsersAtOnce(t *testing.T) {
	for range 20 {
		e := &Env{World: verb.World{Environ: []string{"HOME=" + t.TempDir()}}}
		var stamps [8]atomicfile.Stamp
		var wait sync.WaitGroup
		for i := range stamps {
			wait.Go(func() {
				path, err := keepUsers(e, "a list")
				if err != nil {
					t.Error(err)
				}
				stamps[i] = atomicfile.StampOf(path)
				stamps[i].Changed = 0 // moves when the writer removes its temporary name
			})
		}
		wait.Wait()
		if s := slices.Compact(stamps[:]); len(s) > 1 {
			t.Fatalf("the list was replaced: %v", s)
		}
	}
}

// A list that was damaged is written anew.
func TestKeepUsersDamaged(t *testing.T) {
	e := &Env{World: verb.World{Environ: []string{"HOME=" + t.TempDir()}}}
	path, err := keepUsers(e, "a list")
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("else"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := keepUsers(e, "a list"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "a list" {
		t.Errorf("%q, %v", got, err)
	}
}
