package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// columnOf is a column with the given capabilities; what is not among them is
// enforced.
func columnOf(name string, list ...bawn.Capability) doctor.Column {
	c := doctor.Column{Provider: name}
	for _, a := range sandbox.Attributes() {
		n := bawn.Capability{Attribute: a, Strength: bawn.Enforced, How: "by its engine"}
		for _, given := range list {
			if given.Attribute == a {
				n = given
			}
		}
		c.Capabilities = append(c.Capabilities, n)
	}
	return c
}

func nothingOf(name, why, remedy string) doctor.Column {
	c := doctor.Column{Provider: name}
	for _, a := range sandbox.Attributes() {
		c.Capabilities = append(c.Capabilities, bawn.Capability{Attribute: a, Why: why, Remedy: remedy})
	}
	return c
}

func TestMatrix(t *testing.T) {
	d := &diagnosis{Providers: []doctor.Column{
		columnOf("native", bawn.Capability{Attribute: sandbox.LimitCPU, Why: "no control group is delegated to this user, and without one nothing holds the time of several processes together", Remedy: "sudo loginctl enable-linger"}),
		columnOf("docker", bawn.Capability{Attribute: sandbox.FSProtect, Strength: bawn.Partly, How: "mounts", Why: "names that are not there yet can be made"}),
		nothingOf("gvisor", "runsc is not in PATH", "install runsc"),
	}}
	got := d.matrix([]string{sandbox.FSWrite, sandbox.LimitMemory})
	want := `what each provider enforces here (* is asked for by a session that names none)

                 native  docker  gvisor
fs.write *       yes     yes     no
fs.read          yes     yes     no
fs.patterns      yes     yes     no
fs.protect       yes     part    no
fs.private       yes     yes     no
processes        yes     yes     no
ipc              yes     yes     no
kernel           yes     yes     no
terminal         yes     yes     no
net.none         yes     yes     no
net.allowlist    yes     yes     no
net.full         yes     yes     no
limits.memory *  yes     yes     no
limits.pids      yes     yes     no
limits.cpu       no      yes     no
limits.files     yes     yes     no
limits.size      yes     yes     no
limits.time      yes     yes     no
devices          yes     yes     no

native
  no: limits.cpu
      no control group is delegated to this user, and without one nothing holds
      the time of several processes together
      → sudo loginctl enable-linger

docker
  part: fs.protect
      mounts; names that are not there yet can be made

gvisor
  no: everything
      runsc is not in PATH
      → install runsc
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMatrixFits has every provider there is, and words as long as they get.
func TestMatrixFits(t *testing.T) {
	d := &diagnosis{}
	for _, name := range launch.ProviderNames() {
		d.Providers = append(d.Providers, nothingOf(name, strings.Repeat("some words about it ", 20), ""))
	}
	for line := range strings.Lines(d.matrix(sandbox.Attributes())) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > matrixWidth {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}
