//go:build !linux

package dockerapi

import (
	"context"
	"errors"
	"os"
)

func (v View) openDir(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func (b *Broker) bring(context.Context, *child, *mirror) (bool, error) {
	return false, errors.ErrUnsupported
}
