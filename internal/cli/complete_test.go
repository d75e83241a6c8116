package cli

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
)

// TestCompleteKinds: the kinds of skill check are completed, and no files.
func TestCompleteKinds(t *testing.T) {
	complete, ok := newSkillCheckCommand(&launch.Env{}).GetFlagCompletionFunc("kind")
	if !ok {
		t.Fatal("files are completed")
	}
	words, directive := complete(nil, nil, "")
	if !slices.Equal(words, []string{"skill", "definition", "instructions"}) || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%q, %v", words, directive)
	}
}
