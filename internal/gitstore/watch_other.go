//go:build !linux

package gitstore

import (
	"context"
	"errors"
)

var errUnsupported = errors.New("private git directories need Linux")

type watcher struct{ events chan struct{} }

func newWatcher() (*watcher, error)       { return nil, errUnsupported }
func (w *watcher) add(string) bool        { return false }
func (w *watcher) changed()               {}
func (w *watcher) settle(context.Context) {}
func (w *watcher) close()                 {}
