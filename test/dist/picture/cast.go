// Package picture records the output of a terminal and draws it.
package picture

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// An Event is output that a terminal got, and the time since the recording began.
type Event struct {
	At   time.Duration
	Data string
}

// A Cast is a recording of a terminal's output.
type Cast struct {
	Width, Height int
	Events        []Event
}

// Shorten reduces pauses longer than d to d.
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

// Write writes the cast in the format of asciinema, version 2 (asciicast(5)).
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
