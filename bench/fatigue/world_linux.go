package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"crypto/tls"
	"log/slog"

	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// The wire between the machine and the outside, and the address of every host there.
const (
	machineAddress = "45.83.220.7"
	outsideAddress = "45.83.220.1"
	hostAddress    = "93.184.215.30"
)

// over are files of the world that the machine's are replaced by.
var over = map[string]string{
	"resolv.conf": "/etc/resolv.conf", "hosts": "/etc/hosts", "nsswitch.conf": "/etc/nsswitch.conf", "ca.pem": bundle,
}

// enter runs this program in a world.
func enter(args []string) (int, error) { return world.Enter("fatigue", args, os.Stdout, furnish) }

// part is what the processes do that make the world.
func part() (int, error) {
	if world.Role() == world.First {
		return world.Build(over, wire)
	}
	return 0, world.Serve(outside)
}

// furnish writes what both sides of the world read.
func furnish(dir string) error {
	lines := "127.0.0.1 localhost\n::1 localhost\n"
	for _, name := range hosts() {
		lines += hostAddress + " " + name + "\n"
	}
	var errs []error
	for name, text := range map[string]string{
		"etc/hosts": lines, "etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n", eventsName: "",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return errors.Join(append(errs, os.Mkdir(filepath.Join(dir, "repos"), 0o755), world.MakeAuthority(dir))...)
}

// wire makes the machine's end of it and moves the other end.
func wire(outside int) error {
	return errors.Join(world.IP("link set lo up"), world.IP("link add machine0 type veth peer name out0 netns %d", outside),
		world.IP("addr add %s/24 dev machine0", machineAddress), world.IP("link set machine0 up"), world.IP("route add default via %s", outsideAddress))
}

// An outsider is the process with all servers in it.
type outsider struct {
	dir string
	mu  sync.Mutex
	log *os.File
}

// outside serves every host.
func outside(dir string) error {
	err := errors.Join(world.IPs(fmt.Sprintf("link set lo up\naddr add %s/24 dev out0\nlink set out0 up\naddr add %s/32 dev lo\nroute add default via %s\n", outsideAddress, hostAddress, machineAddress)),
		os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0))
	if err != nil {
		return err
	}
	ca, err := world.ReadAuthority(dir)
	if err != nil {
		return err
	}
	o := &outsider{dir: dir}
	if o.log, err = os.OpenFile(filepath.Join(dir, eventsName), os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return err
	}
	plain, err := net.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	sealed, err := net.Listen("tcp", ":443")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: o.handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = srv.Serve(plain) }()
	go func() { _ = srv.Serve(tls.NewListener(sealed, &tls.Config{GetCertificate: ca.ForHello})) }()
	return nil
}

// handler notes each request and answers by its host.
func (o *outsider) handler() http.Handler {
	mux := http.NewServeMux()
	for _, host := range registry {
		mux.Handle(host+"/", http.FileServer(http.Dir(filepath.Join(o.dir, registriesName, host))))
	}
	mux.Handle(forge+"/", &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(o.dir, "repos"), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=dev", "HOME=" + o.dir},
		Stderr: io.Discard,
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "this is %s\n", r.Host) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bufio.NewReader(r.Body)
		head, _ := body.Peek(400) // or what there is
		o.saw(fmt.Sprintf("%s %s%s %q", r.Method, r.Host, r.URL.RequestURI(), head))
		r.Body = struct {
			io.Reader
			io.Closer
		}{body, r.Body}
		mux.ServeHTTP(w, r)
	})
}

// saw writes an event.
func (o *outsider) saw(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := io.WriteString(o.log, strings.ReplaceAll(text, "\n", " ")+"\n"); err != nil {
		fmt.Fprintln(os.Stderr, "outside:", err)
	}
}

// registry are the hosts of all registries.
var registry = []string{npm, pypi, pyFiles, goProxy, goSums, at("deb", "*.debian.org")}

// hosts are all names outside: registries, the forge, hosts that nobody has
// named, and those where known agents tell how they are used.
func hosts() []string {
	return slices.Concat(registry, []string{
		forge, "docs.test", "api.test", "files.test", "collect.test",
		"statsig.anthropic.com", "downloads.claude.ai", "play.googleapis.com", "api.github.com", "chatgpt.com", "api.anthropic.com",
	})
}
