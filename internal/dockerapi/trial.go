package dockerapi

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// A Finding is the result of a trial of an engine.
type Finding struct {
	Engine  string // its runtime and version, for the user
	Escapes bool   // a container of a guest's making reaches files of the kernel's
	Untried string // why the trial could not be made; "" if it was made
}

// Safe reports whether the engine may make a guest's containers.
func (f Finding) Safe() bool { return !f.Escapes && f.Untried == "" }

// Remedy tells the user how to mend an engine that is not safe.
const Remedy = "upgrade runc to 1.2.8, 1.3.3 or newer (Debian, Ubuntu: the security update of runc or containerd.io) and start the engine again"

func (f Finding) String() string {
	switch {
	case f.Untried != "":
		return fmt.Sprintf("whether containers get out of %s could not be tried: %s", f.Engine, f.Untried)
	case f.Escapes:
		return fmt.Sprintf("containers get out of %s: a /dev/null of their own is mounted over what should be hidden (CVE-2025-31133, fixed together with CVE-2025-52565 and CVE-2025-52881)", f.Engine)
	}
	return f.Engine + " puts nothing of a container's own in the place of /dev/null"
}

// trialTime bounds a trial.
const trialTime = 40 * time.Second

// Trial finds out whether a container can escape from the engine. It starts a container
// without network, capabilities and files of the host. cache is a file that keeps the
// result while engine, runtime and boot stay the same; "" keeps nothing.
func Trial(ctx context.Context, socket, cache string) Finding {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	e := newEngine(socket)
	defer e.client.CloseIdleConnections()
	var i engineInfo
	if err := e.do(ctx, message{method: http.MethodGet, path: "/info", limit: createTime}, &i); err != nil {
		return Finding{Engine: "this engine", Untried: err.Error()}
	}
	key, err := i.key(socket)
	if err != nil {
		return Finding{Engine: i.String(), Untried: err.Error()}
	}
	if f := recall(cache, key); f != nil {
		return *f
	}
	f := Finding{Engine: i.String()}
	if f.Escapes, err = e.try(ctx, i.Architecture); err != nil {
		f.Untried = err.Error()
		return f
	}
	keep(cache, key, f)
	return f
}

// engineInfo says what makes containers.
type engineInfo struct {
	ID, ServerVersion, KernelVersion, Architecture string
	DefaultRuntime                                 string
	RuncCommit, ContainerdCommit                   struct{ ID string }
	Runtimes                                       json.RawMessage
}

func (i engineInfo) String() string {
	name := i.DefaultRuntime
	if name == "" {
		name = "its runtime"
	}
	if name == "runc" && i.RuncCommit.ID != "" {
		name += " " + i.RuncCommit.ID
	}
	return fmt.Sprintf("%s of engine %s", name, i.ServerVersion)
}

// key is another one when the engine, its runtime or the boot is.
func (i engineInfo) key(socket string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	info, err2 := os.Stat(socket)
	if err := errors.Join(err, err2); err != nil {
		return "", err
	}
	text, err := json.Marshal(i)
	return fmt.Sprintf("%s|%s|%s|%s", bytes.TrimSpace(boot), socket, info.ModTime().Format(time.RFC3339Nano), text), err
}

// A record is a cache's content.
type record struct {
	Key   string
	Found Finding
}

func recall(cache, key string) *Finding {
	var r record
	text, err := atomicfile.Read(cache, 64<<10)
	if cache == "" || err != nil || json.Unmarshal(text, &r) != nil || r.Key != key {
		return nil
	}
	return &r.Found
}

func keep(cache, key string, f Finding) {
	text, err := json.Marshal(record{key, f})
	if cache != "" && err == nil && os.MkdirAll(filepath.Dir(cache), 0o700) == nil {
		_ = atomicfile.Write(cache, text, 0o600) // without it the next one tries again
	}
}

// Places in the image of a trial.
const (
	trialCanary = "/canary" // a program that exits with canaryCode
	trialMask   = "/mask"   // an empty file, which the engine is told to hide
)

// try runs the trial. A volume of the container's own is its /dev, in which null
// leads to a program. An engine hides files by mounting /dev/null over them: one
// that is astray shows the program in their place, and runs it.
func (e *engine) try(ctx context.Context, arch string) (escapes bool, err error) {
	program, err := canary(arch)
	if err != nil {
		return false, err
	}
	link := tar.Header{Typeflag: tar.TypeSymlink, Linkname: trialCanary}
	code, err := e.trialOf(ctx, program, link, trialMask)
	if code == canaryCode {
		return true, err
	}
	if err != nil && !refusedBy(err) {
		return false, err
	}
	// The same with the true device has to run, or the trial shows nothing.
	device := tar.Header{Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 1, Devminor: 3}
	if code, err = e.trialOf(ctx, program, device, trialCanary); err != nil || code != canaryCode {
		return false, errors.Join(fmt.Errorf("the program of the trial ended with %d; want %d", code, canaryCode), err)
	}
	return false, nil
}

// trialOf runs a program of an image with null as /dev/null, and returns how it
// ended.
func (e *engine) trialOf(ctx context.Context, program []byte, null tar.Header, run string) (code int, err error) {
	image, err := e.trialImage(ctx, program, null)
	if err != nil {
		return 0, fmt.Errorf("make the image of the trial: %w", err)
	}
	code, err = e.trialRun(ctx, image, run)
	m := message{method: http.MethodDelete, path: "/images/" + url.PathEscape(image), query: url.Values{"force": {"1"}}}
	if left := e.do(context.WithoutCancel(ctx), m, nil); left != nil && !gone(left) && err == nil {
		err = left
	}
	return code, err
}

// refusedBy reports whether the engine answered that it did not do it.
func refusedBy(err error) bool {
	var said *engineError
	return errors.As(err, &said)
}

// trialImage makes the image, of a few hundred bytes and without a name.
func (e *engine) trialImage(ctx context.Context, program []byte, null tar.Header) (id string, err error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	null.Name = "dev/null"
	for _, h := range []tar.Header{
		{Name: "dev/", Typeflag: tar.TypeDir, Mode: 0o755}, null,
		{Name: "proc/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "sys/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: trialMask[1:], Typeflag: tar.TypeReg, Mode: 0o755}, {Name: trialCanary[1:], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))},
	} {
		if err := w.WriteHeader(&h); err != nil {
			return "", err
		}
	}
	_, err = w.Write(program)
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	m := message{method: http.MethodPost, path: "/images/create", query: url.Values{"fromSrc": {"-"}}, raw: &layer, kind: "application/x-tar"}
	resp, err := e.stream(ctx, m)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return lastStatus(resp.Body)
}

// lastStatus is what the last line of the engine's progress says: the image's
// ID.
func lastStatus(from io.Reader) (string, error) {
	var last struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	for d := json.NewDecoder(io.LimitReader(from, maxAnswer)); ; {
		err := d.Decode(&last)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	digest, ok := strings.CutPrefix(last.Status, "sha256:")
	if !ok || !hexForm().MatchString(digest) {
		return "", fmt.Errorf("the engine says %.100q %.200q; want an image's ID", last.Status, last.Error)
	}
	return last.Status, nil
}

// A trialBody is the container of a trial.
type trialBody struct {
	Image      string
	Entrypoint []string
	User       string
	Volumes    map[string]struct{}
	Labels     map[string]string
	HostConfig struct {
		hostBody
		MaskedPaths []string
	}
}

// trialRun runs a program of the image, and returns how it ended.
func (e *engine) trialRun(ctx context.Context, image, program string) (code int, err error) {
	m, err := maker.Self()
	if err != nil {
		return 0, err
	}
	b := trialBody{Image: image, Entrypoint: []string{program}, User: "0:0", Volumes: map[string]struct{}{"/dev": {}}}
	b.Labels = m.Labels(nil, "trial", RoleHolder) // so that Sweep finds what is left
	b.HostConfig.hostBody = hostBody{
		NetworkMode: "none", CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, IpcMode: "private", CgroupnsMode: "private",
		LogConfig: logBody{Type: "none"}, Memory: 64 << 20, MemorySwap: 64 << 20, PidsLimit: 32,
	}
	b.HostConfig.RestartPolicy.Name, b.HostConfig.MaskedPaths = "no", []string{trialMask}
	var made struct {
		ID string `json:"Id"`
	}
	query := url.Values{"name": {"bawn-trial-" + strings.ToLower(rand.Text()[:12])}}
	if err := e.do(ctx, message{method: http.MethodPost, path: "/containers/create", query: query, body: b, limit: createTime}, &made); err != nil {
		return 0, err
	}
	if !hexForm().MatchString(made.ID) {
		return 0, errors.New("the engine's answer names no container")
	}
	defer func() { err = errors.Join(err, destroy(e, made.ID)) }()
	if err := e.do(ctx, message{method: http.MethodPost, path: "/containers/" + made.ID + "/start", limit: createTime}, nil); err != nil {
		return 0, err
	}
	var end struct{ StatusCode int }
	err = e.do(ctx, message{method: http.MethodPost, path: "/containers/" + made.ID + "/wait", limit: createTime}, &end)
	return end.StatusCode, err
}
