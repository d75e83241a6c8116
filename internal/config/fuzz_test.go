package config

import (
	"errors"
	"os"
	"testing"
)

// FuzzLoad feeds bytes to each layer: an error with a place or a valid result,
// and as a project's file never one that is wider.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(base))
	f.Add(Starter(Machine{MemoryMB: 1000}))
	for _, s := range []string{
		"", "mode='plan'", "[profiles.x]\nextends='x'", "isolation={network='none',resources={cpus=1}}", "a='\\u0000'", "[[a]]", "x=[[[{}]]]",
		"isolation.ro=['a','~','/']", "pinned=['isolation']", "\"\"=1", "[profiles.\"\"]", "isolation.resources.timeout='1h1h'", "a=1979-05-27T07:32:00Z",
		"'isolation'.'network'='full'", "isolation.resources.cpus=+1_0.5e-1", "isolation.deny=['a\\nb']", "mode=\"\"\"\nplan\"\"\"",
	} {
		f.Add([]byte(s))
	}
	in := world(f)
	closed := mustLoad(f, in)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, of := range []func(Inputs) string{Inputs.managed, Inputs.User, Inputs.projectFile} {
			put(t, of(in), string(data))
			c, err := Load(in)
			var errs Errors
			switch {
			case err == nil && of(in) == in.projectFile():
				wantNarrower(t, closed, c, string(data))
			case err == nil:
				c.Isolation(in.Workspace)
				c.Origins()
			case !errors.As(err, &errs) || len(errs) == 0 || errs[0].Place.File == "" && errs[0].Place.Layer != Builtin:
				t.Errorf("%q: %T %v", data, err, err)
			}
			if err := os.Remove(of(in)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
