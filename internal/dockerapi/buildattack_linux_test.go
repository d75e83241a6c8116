package dockerapi

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// steps are the containers that the engine has for this session.
func (r *rig) steps() (ids []string) {
	r.t.Helper()
	var list []struct {
		ID string `json:"Id"`
	}
	query := "/containers/json?all=1&filters=" + url.QueryEscape(`{"label":["`+maker.LabelSession+`=`+r.broker.o.Session.ID+`"]}`)
	if _, data := r.direct("GET", query, nil); json.Unmarshal(data, &list) != nil {
		r.t.Fatalf("%s", data)
	}
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// background builds until stop is called, as a client that is ended.
func (r *rig) background(body []byte) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", "http://docker/v1.41/build", bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := r.client.Do(req); err == nil {
			_, _ = new(bytes.Buffer).ReadFrom(resp.Body)
			resp.Body.Close()
		}
	}()
	return func() {
		cancel()
		testenv.Receive(r.t, "the end of a build", ended)
	}
}

// A step's container is the build's alone: what runs there could be swapped while
// the engine copies files in. It ends with the connection of the client, also where
// blocks follow the archive.
func TestStepsAreTheBuildsOwn(t *testing.T) {
	r := newRig(t, nil)
	body := append(buildContext(t, "FROM "+busybox+"\nRUN sleep 1000\n"), make([]byte, 400<<10)...) // the server itself reads 256 KiB
	stop := r.background(body)
	testenv.Until(t, "a step", func() bool { // that the broker knows, and that runs
		all := r.broker.all()
		return len(all) == 1 && r.broker.running(all[0])
	})
	ids := r.steps()
	for _, name := range []string{ids[0], ids[0][:12]} {
		for _, request := range []string{"GET /json", "POST /start", "POST /kill", "POST /exec", "GET /archive?path=/etc/passwd", "PUT /archive?path=/tmp", "POST /rename?name=mine", "GET /logs?stdout=1", "POST /attach?stream=1", "DELETE ?force=1"} {
			method, rest, _ := strings.Cut(request, " ")
			var payload any
			if request == "POST /exec" {
				payload = dict{"Cmd": []string{"true"}}
			}
			if status, text := r.call(method, "/containers/"+name+rest, payload); status != http.StatusNotFound {
				t.Errorf("%s: %d %s", request, status, text)
			}
		}
	}
	if status, text := r.call("POST", "/containers/create", dict{"Image": busybox, "HostConfig": dict{"NetworkMode": "container:" + ids[0]}}); status != http.StatusNotFound {
		t.Errorf("its network: %d %s", status, text)
	}
	r.must("POST", "/containers/prune", nil, nil)
	if _, list := r.call("GET", "/containers/json?all=1", nil); strings.Contains(string(list), ids[0]) || !slices.Equal(r.steps(), ids) {
		t.Errorf("it is listed, or gone: %s %q", list, r.steps())
	}
	id := r.run("c", sleeper(nil))
	r.must("GET", "/containers/"+id+"/archive?path=/etc/passwd", nil, nil) // the control: one of the guest's own
	r.must("DELETE", "/containers/c?force=1", nil, nil)
	stop()
	testenv.Until(t, "the end of the step", func() bool { return len(r.steps()) == 0 && len(r.broker.all()) == 0 })
	if left := r.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	r.broker.store.mu.Lock()
	defer r.broker.store.mu.Unlock()
	if r.broker.store.used != (load{}) {
		t.Errorf("the build still counts: %+v", r.broker.store.used)
	}
}

// Builds wait for each other: each holds a container that no request can end.
func TestBuildsAtATime(t *testing.T) {
	r := newRig(t, nil)
	body := buildContext(t, "FROM "+busybox+"\nRUN sleep 1000\n")
	var stops []func()
	for range maxBuilds + 1 {
		stops = append(stops, r.background(body))
	}
	testenv.Until(t, "some builds", func() bool { return len(r.steps()) == maxBuilds })
	if n := len(r.broker.building); n != maxBuilds || len(r.steps()) != maxBuilds {
		t.Errorf("%d builds, %d steps", n, len(r.steps()))
	}
	for _, stop := range stops {
		stop()
	}
	testenv.Until(t, "their end", func() bool { return len(r.steps()) == 0 && len(r.broker.building) == 0 })
	if _, failed, _ := r.build("", buildContext(t, "FROM "+busybox+"\nRUN true\n")); failed != "" { // the control
		t.Error(failed)
	}
}

// A build opens one file for all that it copies, however many sources there are.
func TestDescriptorsOfABuild(t *testing.T) {
	most := 0
	r := newRig(t, func(r *rig, o *Options) {
		o.Guard = func(ctx context.Context, a bawn.Action) bawn.Decision {
			open, _ := filepath.Glob("/proc/self/fd/*")
			n := 0
			for _, name := range open {
				if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, filepath.Join(o.Dir, "build-")) {
					n++
				}
			}
			most = max(most, n)
			return r.guard(ctx, a)
		}
	})
	text := "FROM " + busybox + "\nFROM " + busybox + "\nCOPY --from=0 " + strings.Repeat("/etc/passwd /etc/group ", 4) + "/copies/\nRUN ls /copies\n"
	said, failed, _ := r.build("", buildContext(t, text))
	if failed != "" || !strings.Contains(said, "group\npasswd\n") {
		t.Fatal(said, failed)
	}
	if most != 1 {
		t.Errorf("%d files of the build were open; want 1", most)
	}
}

// What an image runs on its own, later, is put to the guard when it is built.
func TestImagesAreJudged(t *testing.T) {
	r := newRig(t, func(r *rig, _ *Options) { r.deny = "forbidden" })
	from := "FROM " + busybox + "\n"
	for _, line := range []string{
		`HEALTHCHECK CMD ["forbidden"]`, `HEALTHCHECK --interval=1s CMD ["x", "forbidden"]`, `CMD ["forbidden"]`, `ENTRYPOINT ["", "forbidden"]`, "SHELL [\"forbidden\", \"-c\"]\nRUN true",
		"FROM " + busybox + ` AS unused` + "\n" + `CMD ["forbidden"]` + "\nFROM " + busybox,
	} {
		if _, failed, id := r.build("", buildContext(t, from+line+"\n")); !strings.Contains(failed, "the test says so") || id != "" {
			t.Errorf("%s: %q", line, failed)
		}
	}
	for line, want := range map[string]string{
		"STOPSIGNAL ;": "no signal", "USER a b": "no user", `CMD ["a\u0000b"]`: "zero byte", "EXPOSE 80/" + strings.Repeat("x", 1000): "no port",
	} {
		if _, failed, id := r.build("", buildContext(t, from+line+"\n")); !strings.Contains(failed, want) || id != "" {
			t.Errorf("%s: %q; want %q", line, failed, want)
		}
	}
	said, failed, id := r.build("q=1", buildContext(t, from+"HEALTHCHECK CMD [\"allowed\"]\nSTOPSIGNAL SIGINT\n")) // the control
	if failed != "" || said != id+"\n" {
		t.Error(said, failed)
	}
	if asked := strings.Join(r.asked(), "\n"); !strings.Contains(asked, "docker:create "+busybox+" sh --health-cmd CMD allowed") {
		t.Errorf("asked: %s", asked)
	}
}

// Build arguments may be secret: a step has them, and nothing else.
func TestBuildArgumentsStaySecret(t *testing.T) {
	r := newRig(t, nil)
	text := "FROM " + busybox + "\nARG TOKEN\nARG a;touch=x\nRUN echo \"it's ${#TOKEN}\" && exit 3\n"
	said, failed, _ := r.build("buildargs="+url.QueryEscape(`{"TOKEN":"'hidden'"}`), buildContext(t, text))
	if !strings.Contains(said, "it's 8\n") || !strings.Contains(failed, "returned a non-zero code: 3") {
		t.Errorf("%s%s", said, failed)
	}
	if all := said + failed + strings.Join(r.asked(), "\n"); strings.Contains(all, "hidden") {
		t.Errorf("the argument is in %s", all)
	}
}

// A name that a build gives is the session's: no other session, and nobody at the
// engine, gets another image by it, and no step of a build either.
func TestNamesOfBuiltImages(t *testing.T) {
	r, other := newRig(t, nil), newRig(t, nil)
	id := func(r *rig, name string) string {
		var image struct {
			ID string `json:"Id"`
		}
		r.must("GET", "/images/"+name+"/json", nil, &image)
		return image.ID
	}
	real := id(other, busybox)
	for _, name := range []string{busybox, strings.TrimPrefix(real, "sha256:"), strings.TrimPrefix(real, "sha256:")[:12]} {
		if _, failed, _ := r.build("t="+url.QueryEscape(name), buildContext(t, "FROM "+busybox+"\nRUN touch /mine\n")); failed != "" {
			t.Fatal(failed)
		}
	}
	if mine := id(r, busybox); mine == real {
		t.Error("control: the session does not have its own image by this name")
	}
	if asked := strings.Join(r.asked(), "\n"); !strings.Contains(asked, "docker:create "+busybox+" (built in this session) ") || !strings.Contains(asked, "docker:create "+busybox+" /bin/sh") {
		t.Errorf("asked: %s", asked)
	}
	if now := id(other, busybox); now != real {
		t.Errorf("another session gets %s by the name of %s", now, real)
	}
	_, data := r.direct("GET", "/images/"+busybox+"/json", nil)
	if !strings.Contains(string(data), real) {
		t.Errorf("the engine's image is replaced: %s", data)
	}
	for _, from := range []string{"FROM " + id(r, busybox) + "\n", "FROM nothing\nCOPY --from=" + id(r, busybox) + " /mine /x\n"} {
		from = strings.Replace(from, "nothing", busybox, 1)
		if _, failed, made := other.build("", buildContext(t, from)); !strings.Contains(failed, "No such image") || made != "" {
			t.Errorf("another session's build: %q", failed)
		}
	}
	// A base that is named by its ID is that one, whatever the session has called so.
	said, failed, _ := r.build("", buildContext(t, "FROM sha256:"+strings.TrimPrefix(real, "sha256:")+"\nRUN ls /\n"))
	if failed != "" || strings.Contains(said, "mine") {
		t.Errorf("the base by its ID: %s%s", said, failed)
	}
}

// Links of a context and of images lead within the image.
func TestLinksOfBuilds(t *testing.T) {
	r := newRig(t, nil)
	dir := t.TempDir()
	canary, secret := filepath.Join(dir, "canary"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 20)
	links := []tar.Header{
		{Typeflag: tar.TypeSymlink, Name: "tree/abs", Linkname: dir}, {Typeflag: tar.TypeSymlink, Name: "tree/up", Linkname: up + dir[1:]},
		{Typeflag: tar.TypeSymlink, Name: "tree/kernel", Linkname: "/proc"}, {Typeflag: tar.TypeReg, Name: "canary", Mode: 0o644},
		{Typeflag: tar.TypeReg, Name: "tree/abs/canary"},
	}
	text := "FROM " + busybox + `
RUN mkdir -p ` + dir + `
COPY tree /
COPY canary /abs/
COPY canary /up/two
COPY canary /kernel/sys/kernel/core_pattern
RUN ls /abs/
`
	if said, failed, _ := r.build("t=linked", buildContext(t, text, links...)); failed != "" || !strings.Contains(said, "canary\ntwo\n") {
		t.Errorf("links in the image: %s%s", said, failed)
	}
	if _, failed, _ := r.build("", buildContext(t, "FROM linked\nWORKDIR /abs/made\nRUN true\n")); !strings.Contains(failed, "is a link in the container") {
		t.Errorf("a directory behind a link: %q", failed)
	}
	from := "FROM " + busybox + "\nCOPY --from=linked "
	for _, source := range []string{"/abs/secret", "/up/secret", "/kernel/1/environ", "/proc/1/environ", "/proc/self/root" + secret} {
		if _, failed, _ := r.build("", buildContext(t, from+source+" /x\n")); failed == "" {
			t.Errorf("%s was copied", source)
		}
	}
	if _, failed, _ := r.build("", buildContext(t, from+"/abs/canary /x\n")); failed != "" { // the control
		t.Error(failed)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("the build wrote to the host: %v (%s)", names, canary)
	}
}

// Values of variables, and the environment that arguments make, have size limits.
func TestVariablesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	from := "FROM " + busybox + "\n"
	bomb := "ENV A=" + strings.Repeat("x", 8<<10) + "\n"
	for range 6 {
		bomb += "ENV A=$A$A$A$A\n"
	}
	args, volumes := "", "VOLUME"
	for n := range maxArgs + 1 {
		args += fmt.Sprintf("ARG A%d=x\n", n)
		volumes += fmt.Sprintf(" /v%d", n)
	}
	for name, text := range map[string]string{
		"a bomb": bomb, "many sources": "COPY " + strings.Repeat("* ", 5000) + "/x/\n", "many arguments": args,
		"a large environment": "ENV D=" + strings.Repeat("x", 129<<10) + "\n", "many volumes": volumes + "\n",
	} {
		if _, failed, id := r.build("", buildContext(t, from+text)); failed == "" || id != "" || len(failed) > 2000 {
			t.Errorf("%s: %.300q", name, failed)
		}
	}
	if _, failed, _ := r.build("", buildContext(t, from+"ARG A=x\nENV B=$A$A VAR=1\nCOPY * /x/\n")); failed != "" { // the control
		t.Error(failed)
	}
}
