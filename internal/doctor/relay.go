package doctor

import (
	"errors"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// relayed takes back the network by name where the program that serves it,
// which find looks for, is not there.
func relayed(list []bawn.Capability, find func() (string, error)) []bawn.Capability {
	_, err := find()
	if err == nil {
		return list
	}
	why, remedy := err.Error(), ""
	var missing *remote.MissingError
	if errors.As(err, &missing) {
		why, remedy = remote.Program+" is not installed beside bawn", "install both programs of one release in one directory: go build -o DIR ./cmd/bawn ./cmd/bawnd"
	}
	for i, c := range list {
		if c.Attribute == sandbox.NetAllow && c.Strength != bawn.Unenforced {
			list[i] = bawn.Capability{Attribute: c.Attribute, Why: why, Remedy: remedy}
		}
	}
	return list
}
