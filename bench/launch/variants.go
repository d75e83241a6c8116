package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/bench/measure"
)

// Names of the variants that others are compared with.
const (
	bare      = "true"
	native    = "bawn run -q -- true"
	byName    = "bawn, network by name"
	earlier   = ", before"
	bwrapSame = "bwrap, the same namespaces"
	srtName   = "srt " + srtVersion
	bareAgain = "true, descriptors open before"
	inSession = "true in a running session"
)

// srtVersion is what install-peers installs.
const srtVersion = "0.0.78"

// A variant is one way to start a program.
type variant struct {
	Name    string   `json:"name"`
	Argv    []string `json:"argv,omitempty"` // a program of its own each time
	Session bool     `json:"session,omitempty"`
	Owner   bool     `json:"owner,omitempty"` // with descriptors opened before, as a session's commands
}

// tools are the programs that are measured. An empty path says that it is not
// here; missing says so to the reader.
type tools struct {
	self, bawn, before, empty, bwrap, srt, trueProgram string
	docker                                             []string // the client's command with its -H
	image                                              string
	missing                                            []string
}

func (o *options) tools(g *measure.Ground) (*tools, error) {
	t := &tools{bawn: o.bawn, before: o.before}
	var errs [5]error
	t.self, errs[0] = g.Self()
	t.empty, errs[1] = g.Build("bench/launch/empty")
	if t.bawn == "" {
		t.bawn, errs[2] = g.Build("cmd/bawn")
		_, errs[4] = g.Build("cmd/bawn-egress")
	} else if t.bawn, errs[2] = filepath.Abs(t.bawn); errs[2] == nil {
		_, errs[2] = os.Stat(t.bawn)
	}
	t.trueProgram, errs[3] = exec.LookPath("true")
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	t.look(o)
	return t, nil
}

// look finds the programs that need not be there.
func (t *tools) look(o *options) {
	var err error
	if t.bwrap, err = exec.LookPath("bwrap"); err != nil {
		t.missing = append(t.missing, "bwrap: not installed")
	}
	t.srt = filepath.Join(o.peers, "node_modules", ".bin", "srt")
	if _, err := os.Stat(t.srt); o.peers == "" || err != nil {
		t.srt = ""
		t.missing = append(t.missing, srtName+": not installed (bench/launch/install-peers DIR, then -peers DIR)")
	}
	t.docker = []string{"docker"}
	if o.dockerHost != "" {
		t.docker = append(t.docker, "-H", o.dockerHost)
	}
	if err := t.importImage(); err != nil {
		t.docker = nil
		t.missing = append(t.missing, "docker: no daemon answers")
	}
}

// importImage makes an image that holds the empty Go program, so that no
// registry is needed.
func (t *tools) importImage() error {
	if err := exec.Command(t.docker[0], append(t.docker[1:], "version", "--format", "{{.Server.Version}}")...).Run(); err != nil {
		return err
	}
	program, err := os.ReadFile(t.empty)
	if err != nil {
		return err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	if err := w.WriteHeader(&tar.Header{Name: "true", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return err
	}
	if _, err := w.Write(program); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	t.image = "bawn-bench:latest"
	cmd := exec.Command(t.docker[0], append(t.docker[1:], "import", "-", t.image)...)
	cmd.Stdin = &image
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("docker import: %w: %s", err, out)
	}
	return nil
}

// close removes the image.
func (t *tools) close() {
	if t.image != "" && t.docker != nil {
		_ = exec.Command(t.docker[0], append(t.docker[1:], "rmi", t.image)...).Run()
	}
}

// variants are those that who can run.
func (t *tools) variants(who measure.Who) []variant {
	list := []variant{
		{Name: bare, Argv: []string{t.trueProgram}},
		{Name: "empty Go program", Argv: []string{t.empty}},
		{Name: "bawn --version", Argv: []string{t.bawn, "--version"}},
		{Name: native, Argv: []string{t.bawn, "run", "-q", "--net", "none", "--", t.trueProgram}},
		{Name: byName, Argv: []string{t.bawn, "run", "-q", "--", t.trueProgram}},
	}
	if t.before != "" {
		list = append(list,
			variant{Name: native + earlier, Argv: []string{t.before, "run", "-q", "--net", "none", "--", t.trueProgram}},
			variant{Name: byName + earlier, Argv: []string{t.before, "run", "-q", "--", t.trueProgram}})
	}
	if t.bwrap != "" {
		private := strings.Fields(t.bwrap + " --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp")
		same := strings.Fields("--tmpfs /run --bind W W --chdir W --new-session --die-with-parent --cap-drop ALL")
		for i := range same {
			if same[i] == "W" {
				same[i] = who.Workspace
			}
		}
		list = append(list,
			variant{Name: "bwrap, minimal", Argv: append(private[:len(private):len(private)], t.trueProgram)},
			variant{Name: bwrapSame, Argv: append(append(private[:len(private):len(private)], same...), t.trueProgram)})
	}
	if t.srt != "" {
		list = append(list, variant{Name: srtName, Argv: []string{t.srt, t.trueProgram}})
	}
	if t.docker != nil && who.Name == "root" {
		list = append(list, variant{Name: "docker run --rm --network none", Argv: append(t.docker[:len(t.docker):len(t.docker)], "run", "--rm", "--network", "none", t.image, "/true")})
	}
	return append(list,
		variant{Name: bareAgain, Argv: []string{t.trueProgram}, Owner: true},
		variant{Name: inSession, Argv: []string{t.trueProgram}, Session: true})
}
