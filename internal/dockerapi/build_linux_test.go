package dockerapi

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// context is the tar stream of a build with a Dockerfile.
func buildContext(t testing.TB, dockerfile string, more ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range append([]tar.Header{{Typeflag: tar.TypeReg, Name: "Dockerfile", Mode: 0o644}}, more...) {
		text := "text of " + h.Name + "\n"
		if h.Name == "Dockerfile" {
			text = dockerfile
		}
		if h.Typeflag != tar.TypeReg {
			text = ""
		}
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// build asks for a build, and returns all that was said, and the error.
func (r *rig) build(query string, body []byte) (said, failed, id string) {
	r.t.Helper()
	status, data := r.call("POST", "/build?"+query, body)
	if status != http.StatusOK {
		return "", fmt.Sprintf("%d %s", status, data), ""
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var l buildLine
		if err := d.Decode(&l); err != nil {
			r.t.Fatalf("%v: %s", err, data)
		}
		said += l.Stream
		failed += l.Error
		id += l.Aux["ID"]
	}
	return said, failed, id
}

// output is what a container of an image writes.
func (r *rig) output(image string, cmd ...string) string {
	r.t.Helper()
	body := dict{"Image": image, "HostConfig": dict{"NetworkMode": "none"}}
	if len(cmd) > 0 {
		body["Cmd"] = cmd
	}
	id := r.run("", body)
	r.must("POST", "/containers/"+id+"/wait", nil, nil)
	_, raw := r.call("GET", "/containers/"+id+"/logs?stdout=1&stderr=1", nil)
	r.must("DELETE", "/containers/"+id, nil, nil)
	return demultiplex(raw)
}

const stages = `# of two stages
ARG TAG=latest
FROM ` + busybox + ` AS base
ARG WHAT=nothing
ENV KEPT="is kept"
RUN echo "$WHAT, $KEPT" >/made && \
    echo from the step
FROM base
LABEL of=test
WORKDIR /srv/here
COPY dir ./
COPY --chown=7:8 file renamed
COPY --from=0 /made other/
USER 7
EXPOSE 80
CMD ["sh", "-c", "pwd; id -u; cat /made other/made in renamed 2>/dev/null; ls -ln renamed | cut -c1-10; echo WHAT=$WHAT $KEPT"]
`

// A build's context needs nothing of the host; its result is an image of this
// session alone, and ends with it.
func TestBuild(t *testing.T) {
	r := newRig(t, nil)
	body := buildContext(t, stages, tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o6755}, tar.Header{Typeflag: tar.TypeDir, Name: "dir/", Mode: 0o755}, tar.Header{Typeflag: tar.TypeReg, Name: "dir/in", Mode: 0o600, Uid: 5})
	said, failed, id := r.build("t=made&rm=1&buildargs="+url.QueryEscape(`{"WHAT":"it's given"}`)+"&labels="+url.QueryEscape(`{"more":"1"}`), body)
	if failed != "" || !strings.Contains(said, "from the step\n") || !strings.Contains(said, "Successfully tagged made:latest\n") || !strings.HasPrefix(id, "sha256:") {
		t.Fatalf("%s%s", said, failed)
	}
	want := "/srv/here\n7\nit's given, is kept\nit's given, is kept\n"
	if got := r.output("made"); !strings.HasPrefix(got, want) || !strings.Contains(got, "text of file\n-rwxr-xr-x") || !strings.Contains(got, "WHAT= is kept") || strings.Contains(got, "text of dir/in") {
		t.Errorf("the image writes %q", got) // dir/in is root's, and can't be read
	}
	var image struct {
		RepoTags []string
		Config   struct{ Labels map[string]string }
	}
	r.must("GET", "/images/made:latest/json", nil, &image)
	if fmt.Sprint(image.RepoTags, image.Config.Labels) != "[made:latest] map[more:1 of:test]" {
		t.Errorf("%+v", image)
	}
	other := newRig(t, nil)
	for _, name := range []string{"made", id} {
		if status, text := other.call("POST", "/containers/create", dict{"Image": name}); status != http.StatusNotFound {
			t.Errorf("another session uses %s: %d %s", name, status, text)
		}
	}
	if _, list := other.call("GET", "/images/json", nil); strings.Contains(string(list), strings.TrimPrefix(id, "sha256:")) || !strings.Contains(string(list), busybox) {
		t.Errorf("another session is shown %s", list)
	}
	// A build on it, which fails: what there was stays, and what was made goes.
	_, failed, _ = r.build("t=made", buildContext(t, "FROM made\nUSER 0\nRUN echo more >/more\nRUN exit 3\n"))
	if !strings.Contains(failed, "returned a non-zero code: 3") {
		t.Errorf("a step that fails: %q", failed)
	}
	if n := len(r.broker.all()); n != 0 {
		t.Errorf("%d containers of steps are left", n)
	}
	left := slices.DeleteFunc(r.left(), func(s string) bool { return strings.Contains(s, "<none>") }) // what it was made of
	if len(left) != 1 {
		t.Errorf("left: %q; want the first image", left)
	}
	r.must("DELETE", "/images/made", nil, nil)
	if left := r.left(); len(left) != 0 {
		t.Errorf("after it was removed: %q", left)
	}
	r.build("t=again", buildContext(t, "FROM "+busybox+"\nRUN true\n")) // ends with the session (newRig)
}

// The steps of a build are containers of the session: no more capabilities, no
// other network, no mounts, and the guard is asked.
func TestStepsAreContained(t *testing.T) {
	r := newRig(t, func(r *rig, _ *Options) { r.deny = "forbidden" })
	canary := filepath.Join(t.TempDir(), "canary")
	text := "FROM " + busybox + `
COPY file /../../../../../../../..` + canary + `
RUN grep -E "CapEff|NoNewPrivs" /proc/self/status; ls /sys/class/net; cat /sys/fs/cgroup/memory/memory.limit_in_bytes
RUN mknod /dev/x c 1 3 || echo no device
`
	said, failed, _ := r.build("", buildContext(t, text, tar.Header{Typeflag: tar.TypeReg, Name: "file"}))
	if failed != "" || !strings.Contains(said, "CapEff:\t00000000000004fb\nNoNewPrivs:\t1\nlo\n268435456\n") || !strings.Contains(said, "no device") {
		t.Errorf("%s%s", said, failed)
	}
	if _, err := os.Lstat(canary); err == nil {
		t.Error("the build wrote to the host")
	}
	if _, failed, _ = r.build("", buildContext(t, "FROM "+busybox+"\nRUN [\"forbidden\"]\n")); !strings.Contains(failed, "the test says so") {
		t.Errorf("what the guard denies: %q", failed)
	}
	asked := strings.Join(r.asked(), "\n")
	if !strings.Contains(asked, "docker:build ") || !strings.Contains(asked, "docker:create ") || !strings.Contains(asked, "docker:start ") {
		t.Errorf("asked: %s", asked)
	}
}

// What would fetch, reach the host or need BuildKit is refused.
func TestBuildsRefuse(t *testing.T) {
	r := newRig(t, nil)
	from := "FROM " + busybox + "\n"
	for name, tt := range map[string]struct{ query, text, want string }{
		"an absent base":      {"", "FROM nobody/absent\n", "No such image"},
		"an address":          {"", from + "ADD http://127.0.0.1:1/x /\n", "addresses are not fetched"},
		"an address as ARG":   {"buildargs=" + url.QueryEscape(`{"X":"http://127.0.0.1:1/x"}`), from + "ARG X\nADD $X /\n", "addresses are not fetched"},
		"an absent image":     {"", from + "COPY --from=nobody/absent /x /\n", "No such image"},
		"the kernel's files":  {"", from + "COPY Dockerfile /proc/sys/kernel/core_pattern\n", "the kernel's"},
		"files of the kernel": {"", from + "FROM " + busybox + "\nCOPY --from=0 /proc/1/environ /x\n", "the kernel's"},
		"a secret":            {"", from + "RUN --mount=type=secret,id=a true\n", "is not served"},
		"the host's network":  {"networkmode=host", from, RuleNetwork},
		"a container's":       {"networkmode=container:x", from, RuleNetwork},
		"BuildKit":            {"version=2", from, "DOCKER_BUILDKIT=0"},
		"a remote context":    {"remote=" + url.QueryEscape("http://127.0.0.1:1/x"), from, RuleQuery},
		"more hosts":          {"extrahosts=a:127.0.0.1", from, RuleQuery},
		"a group":             {"cgroupparent=/x", from, RuleQuery},
		"Bawn's labels":       {"", from + "LABEL dev.bawn.session=x\n", "Bawn's own"},
		"Bawn's labels, said": {"labels=" + url.QueryEscape(`{"dev.bawn.session":"x"}`), from, "Bawn's own"},
		"no file":             {"", from + "COPY absent /\n", "there is no"},
		"another Dockerfile":  {"dockerfile=" + url.QueryEscape("../../etc/passwd"), from, "no file"},
		"no context":          {"dockerfile=Other", from, "no file"},
		"no FROM":             {"", "ARG X\n", "no FROM"},
		"no stage":            {"target=x", from, "no stage"},
	} {
		if _, failed, id := r.build(tt.query, buildContext(t, tt.text)); !strings.Contains(failed, tt.want) || id != "" {
			t.Errorf("%s: %q; want %q", name, failed, tt.want)
		}
	}
	device := buildContext(t, from+"COPY null /x\n", tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3})
	if _, failed, _ := r.build("", device); !strings.Contains(failed, "is a device") {
		t.Errorf("a device: %q", failed)
	}
	if _, failed, id := r.build("", buildContext(t, from)); failed != "" || id == "" { // the control
		t.Error(failed)
	}
}
