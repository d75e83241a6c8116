package main

import (
	"fmt"
	"io"
	"os"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A question asks a driver, which runs bare or in a session, for one thing.
type question struct {
	Fixture string `json:"fixture,omitempty"`
	Prepare string `json:"prepare,omitempty"`
	Task    string `json:"task,omitempty"`
}

func serve(workspace string, in io.Reader, out io.Writer) error {
	if err := os.Chdir(workspace); err != nil {
		return err
	}
	return measure.Serve(in, out, func(q question) (any, error) {
		switch {
		case q.Fixture != "":
			f, ok := fixtures[q.Fixture]
			if !ok {
				return nil, fmt.Errorf("no fixture %q", q.Fixture)
			}
			return nil, f()
		case q.Prepare != "":
			t, err := find(q.Prepare)
			if err != nil || t.prepare == nil {
				return nil, err
			}
			return nil, t.prepare()
		}
		t, err := find(q.Task)
		if err != nil {
			return nil, err
		}
		return t.run()
	})
}

// once runs one task, for the measurement that includes the start.
func once(name string) error {
	t, err := find(name)
	if err == nil {
		_, err = t.run()
	}
	return err
}
