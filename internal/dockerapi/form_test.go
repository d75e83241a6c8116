package dockerapi

import "testing"

// TestForms compiles all of them, which nothing else does before a guest comes.
func TestForms(t *testing.T) {
	for expression, f := range map[string]interface{ MatchString(string) bool }{
		"session": sessionForm(), "version": versionPrefix(), "path": pathChars(), "word": wordForm(), "hex": hexForm(),
		"container": containerName(), "host": hostLabel(), "user": userForm(), "signal": signalForm(), "image": imageForm(),
	} {
		if f.MatchString("\x00") {
			t.Errorf("%s takes anything", expression)
		}
	}
}
