// Package stdlog takes what libraries print through Go's standard log, such as net/http's
// "Unsolicited response received on idle HTTP channel starting with …". Such a line holds what
// a host has sent, which may be a secret. A program that imports this package prints none of
// it: its standard error is somebody's terminal.
package stdlog

import (
	"context"
	"log/slog"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // log's own output goes with it

// To has each line from now on handed to take, which may be called from several goroutines
// at once and must not print through log itself.
func To(take func(line string)) { slog.SetDefault(slog.New(handler{take})) }

// A handler hands lines on. Package log has no attributes and no groups.
type handler struct{ take func(string) }

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(_ context.Context, r slog.Record) error { h.take(r.Message); return nil }

func (h handler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h handler) WithGroup(string) slog.Handler { return h }
