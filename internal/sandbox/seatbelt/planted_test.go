package seatbelt

import (
	"errors"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/symlink"
)

// TestPlantedLinks: a place that is named by a link in the workspace is refused,
// one by the human's own is not.
func TestPlantedLinks(t *testing.T) {
	f := mac()
	f.Follow = func(p string) ([]string, string) {
		if p == workspace+"/build" || p == home+"/alias" {
			return []string{p}, "/Users/ada/.ssh"
		}
		return nil, p
	}
	for name, want := range map[string]bool{workspace + "/build": true, home + "/alias": false} {
		for _, access := range []bawn.Access{bawn.Hidden, bawn.ReadOnly, bawn.ReadWrite} {
			req := request()
			req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: name, Access: access, Why: "--flag"})
			_, err := Make(req, f)
			var planted *symlink.PlantedError
			if errors.As(err, &planted) != want || !want && err != nil {
				t.Errorf("%s as %v: %v", name, access, err)
			}
		}
	}
}
