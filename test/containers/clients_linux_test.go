package containers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
)

// Programs that speak the Docker API do in a session what they are used for.
// TestSession is their representative in "make test".
func TestClients(t *testing.T) {
	testenv.Whole(t)
	testenv.Need(t, "node", "npm-agents", "docker-clients")
	made := filepath.Join(build(t), "clients")
	compile := func(t *testing.T, module string) {
		program := map[string]string{"compose": "github.com/docker/compose/v2/cmd", "testcontainers": "."}[module]
		cmd := exec.Command("go", "build", "-o", filepath.Join(made, module), program)
		cmd.Dir, cmd.Env = filepath.Join("../../tools", module), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	modules := func(name string) string {
		return "NODE_PATH=" + filepath.Join(os.Getenv(testenv.AgentsVariable), name, "node_modules") + " node " + name + ".js"
	}
	for name, script := range map[string]string{
		"docker CLI of the distribution": "sh cli.sh /usr/bin/docker",
		"docker CLI":                     "sh cli.sh docker",
		"docker-compose 1.29":            "sh compose.sh /usr/bin/docker-compose",
		"docker compose 2":               "sh compose.sh $PWD/programs/compose",
		"docker-py":                      "/usr/bin/python3 dockerpy.py",
		"dockerode":                      modules("dockerode"),
		"Testcontainers for Node":        modules("testcontainers"),
		"Testcontainers for Go":          "programs/testcontainers",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			err := os.CopyFS(w.project, os.DirFS("testdata/clients"))
			if _, program, ok := strings.Cut(script, "programs/"); err == nil && ok { // the guest has a /tmp of its own
				compile(t, program)
				err = os.CopyFS(filepath.Join(w.project, "programs"), os.DirFS(made))
			}
			if err != nil {
				t.Fatal(err)
			}
			dockerfile := filepath.Join(w.project, "context/Dockerfile")
			text, err := os.ReadFile(dockerfile)
			if err == nil {
				err = os.WriteFile(dockerfile, []byte(strings.Replace(string(text), "IMAGE", engine.Busybox, 1)), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			out := w.run("export BB CONTEXT=$PWD/context COMPOSE_PROJECT_NAME=demo\n"+script, "--net", "none")
			if !strings.Contains(out, " done\n") {
				t.Errorf("%s", out)
			}
			w.ended()
		})
	}
}
