// Package picture records what a terminal shows, and draws it.
package picture

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// An Event is what a terminal was sent at a time after the beginning.
type Event struct {
	At   time.Duration
	Data string
}

// A Cast is all that a terminal has shown.
type Cast struct {
	Width, Height int
	Events        []Event
}

// Shorten makes pauses longer than d as long as d.
func (c *Cast) Shorten(d time.Duration) {
	var last, cut time.Duration
	for i, e := range c.Events {
		if gap := e.At - last; gap > d {
			cut += gap - d
		}
		last = e.At
		c.Events[i].At -= cut
	}
}

// Write writes the cast in the form of asciinema, version 2 (asciicast(5)).
func (c *Cast) Write(w io.Writer, title string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"version": 2, "width": c.Width, "height": c.Height, "title": title}); err != nil {
		return err
	}
	for _, e := range c.Events {
		if err := enc.Encode([]any{json.Number(fmt.Sprintf("%.3f", e.At.Seconds())), "o", e.Data}); err != nil {
			return err
		}
	}
	return nil
}
