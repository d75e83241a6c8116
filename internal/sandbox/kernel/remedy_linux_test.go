package kernel

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNamespaceRemedyNamesTheKind: each kind has a limit of its own.
func TestNamespaceRemedyNamesTheKind(t *testing.T) {
	for kind, want := range map[string]string{"user": "user.max_user_namespaces=", "mount": "user.max_mnt_namespaces=", "net": "user.max_net_namespaces="} {
		if got := NamespaceRemedy(unix.ENOSPC, kind); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", kind, got, want)
		}
	}
	if got := NamespaceRemedy(nil, "user"); got != "" {
		t.Errorf("nothing is wrong, and the remedy is %q", got)
	}
}
