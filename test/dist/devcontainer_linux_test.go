package dist

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
)

// devcontainer installs the example's feature in an image of a clean Debian, as a dev
// container's tool does, and works in a container with the feature's options. Without
// them Bawn refuses.
func devcontainer(t *testing.T, deb string) {
	testenv.Whole(t)
	testenv.Need(t, "docker-clients")
	e, r := engine.Start(t), newRoot(t)
	docker := func(words ...string) (string, error) {
		cmd := exec.Command("docker", words...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host(), "DOCKER_BUILDKIT=0")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	feature := t.TempDir()
	r.host("sh", "-c", `set -e
cp ../../examples/editor/devcontainer/bawn/* "$2" "$1/" && printf 'FROM scratch\nADD root.tar /\nCOPY . /feature\nRUN sh /feature/install.sh\n' >"$1/Dockerfile"
tar -C "$3" --one-file-system -cf "$1/root.tar" .`, "sh", feature, deb, r.dir)
	if out, err := docker("build", "--network", "none", "-t", "dev", feature); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(feature, "devcontainer-feature.json"))
	var options struct{ SecurityOpt []string }
	if err == nil {
		err = json.Unmarshal(text, &options)
	}
	if err != nil || len(options.SecurityOpt) == 0 {
		t.Fatalf("the feature's options: %v, %q", err, text)
	}
	line := []string{"--user", "ada", "--env", "HOME=/home/ada", "dev", "sh", "-c",
		`mkdir -p ~/project ~/.ssh && cd ~/project && echo hidden >~/.ssh/id && bawn run -- sh -c 'echo inside >made; cat ~/.ssh/id'; cat made`}
	with := []string{"run", "--rm", "--network", "none"}
	if out, err := docker(append(with, line...)...); err == nil || strings.Contains(out, "inside") {
		t.Errorf("without the feature's options: %v\n%s\nwant a refusal", err, out)
	}
	for _, o := range options.SecurityOpt {
		with = append(with, "--security-opt", o)
	}
	if out, err := docker(append(with, line...)...); err != nil || !strings.HasSuffix(out, "inside\n") || strings.Contains(out, "hidden\n") {
		t.Errorf("%v\n%s\nwant \"inside\", and no key", err, out)
	}
}
