// Package frontend serves humans: the API on a unix socket and, when asked for,
// the web page over HTTPS with its notices. It puts together what packages api
// and webui need; it decides nothing.
package frontend

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/relay/webui"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/web"
)

// Options are what the frontends work on. Queue, Items, Recorder, Log, Socket and Admit
// must be set.
type Options struct {
	Runtime  string // directory of the registry of sessions
	State    string // directory of the web page's authority
	AuditDir string // directory of the audit log
	Queue    approval.Inbox
	History  func(ctx context.Context, before time.Time, limit int) ([]approval.Record, error)
	Items    webui.Items
	Recorder bawn.Recorder
	Log      *slog.Logger
	// Socket opens the API's socket, after all else that may fail: who finds it
	// finds the page as well.
	Socket  func() (net.Listener, error)
	Admit   func(net.Conn) error // who may use it; records refused peers
	Keyless func(error)          // records a request without the key
	Busy    func() (done func()) // told of each call, or nil
	User    string               // who answers over the socket
	Version string
	Explain func(ctx context.Context, m *bawnv1.PolicyServiceExplainRequest) ([]byte, error)
	// Mechanisms finds out what this machine can enforce. It is called once.
	Mechanisms func() []*bawnv1.Mechanism
	Past       api.Past   // what sessions have changed
	Copies     api.Copies // the copies of sessions
	OnDemand   bool       // the relay ends when there has been nothing to do for a while
	Unit       bool       // the system has made the relay's sockets
	Stop       func()     // ends the relay
	Ready      func()     // called once all is served, or nil
	Page       Page
}

// A Page is how the web page is served. The zero Page serves no page.
type Page struct {
	Listen            string // ADDRESS:PORT; "" serves no page
	Name              string // of the host in the page's address; "" is localhost
	CertFile, KeyFile string // PEM; "" is a certificate of Bawn's own
	Notices           string // file of the ways for notices, which may be absent
	NoticeAfter       time.Duration
	Secret            func(ctx context.Context, name string) (bawn.Secret, error) // of the vault
}

// Serve serves until ctx ends or one of the frontends breaks.
func Serve(ctx context.Context, o Options) error {
	f := &frontends{Options: o, started: time.Now()}
	f.sessions = newSessions(o.Runtime, o.AuditDir)
	l, err := f.listen()
	if err != nil {
		return err
	}
	a, err := f.newAPI(ctx, l)
	if err != nil {
		return err
	}
	unix, err := o.Socket()
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	failed := make(chan error, 2)
	open := func(frontend func() error) {
		all.Go(func() {
			failed <- frontend()
			stop()
		})
	}
	socket := &api.Socket{API: f.busy(a), Check: o.Admit, Keyless: o.Keyless, Caller: api.Caller{Name: cmp.Or(o.User, "the user"), Peer: "relay.sock"}, Log: o.Log}
	open(func() error { return socket.Serve(ctx, unix) })
	if o.Ready != nil {
		all.Go(o.Ready)
	}
	if f.page != nil {
		open(func() error { return f.page.Serve(ctx, l) })
		all.Go(func() { f.notify(ctx) })
		o.Log.Info("the web page is served", "address", webui.Origin(f.name(), f.port))
	}
	all.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return err
}

type frontends struct {
	Options
	started  time.Time
	sessions *sessions
	page     *webui.Server
	port     uint16

	once       sync.Once
	mechanisms []*bawnv1.Mechanism
}

func (f *frontends) name() string { return cmp.Or(f.Page.Name, "localhost") }

// listen opens the page's port, where it is wanted.
func (f *frontends) listen() (net.Listener, error) {
	if f.Page.Listen == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(f.Page.Listen)
	if err != nil {
		return nil, fmt.Errorf("address %q: want ADDRESS:PORT, for example 127.0.0.1:7443", f.Page.Listen)
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return nil, fmt.Errorf("address %q: want an IP address, for example 127.0.0.1:7443, or 0.0.0.0 or [::] for all", f.Page.Listen)
	}
	l, err := net.Listen("tcp", f.Page.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the web page: %w", err)
	}
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	f.port = addr.Port()
	return l, nil
}

// newAPI makes the services, and the web page where there is a listener for it.
func (f *frontends) newAPI(ctx context.Context, l net.Listener) (*api.API, error) {
	o := api.Options{
		Inbox: f.Queue, History: f.History, Sessions: f.sessions, AuditDir: f.AuditDir, Explain: f.Explain, System: f.system, Status: f.status, Stop: f.Stop, Past: f.Past, Copies: f.Copies, Recorder: f.Recorder, Now: time.Now,
	}
	if l == nil {
		return api.New(o)
	}
	// Page and API need each other: the page's devices are the API's.
	var served *api.API
	err := f.newPage(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := webui.DeviceOf(r.Context())
		if !ok {
			http.Error(w, "no device", http.StatusUnauthorized)
			return
		}
		c := api.Caller{Name: "web:" + d.Name, Device: d.ID, ReadOnly: d.ReadOnly, Peer: r.RemoteAddr}
		served.ServeHTTP(w, r.WithContext(api.WithCaller(r.Context(), c)))
	}))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	o.Devices, o.Touches = f.page, f.page
	served, err = api.New(o)
	return served, err
}

func (f *frontends) newPage(ctx context.Context, handler http.Handler) error {
	machine, _ := os.Hostname() // "": the page names none
	o := webui.Options{
		Name: f.name(), Port: f.port, Machine: machine, Items: f.Items, Recorder: f.Recorder, API: handler, Files: web.Files(), Now: time.Now, Log: f.Log,
	}
	var err error
	if o.Notices, err = f.ways(ctx); err != nil {
		return err
	}
	if err := f.certify(&o); err != nil {
		return err
	}
	f.page, err = webui.New(ctx, o)
	return err
}

// certify chooses the certificate.
func (f *frontends) certify(o *webui.Options) (err error) {
	p := f.Page
	if (p.CertFile == "") != (p.KeyFile == "") {
		return errors.New("a certificate needs its key, and a key its certificate: give both --tls-cert and --tls-key")
	}
	if p.CertFile != "" {
		o.Certificate, err = webui.FileCertificate(p.CertFile, p.KeyFile, time.Now)
		return err
	}
	ca, err := webui.OpenAuthority(f.State, o.Name, time.Now)
	if err != nil {
		return err
	}
	o.Certificate, o.Fingerprint, o.Authority = ca.Certificate, ca.Fingerprint(), ca.PEM()
	return nil
}

var _ func() (*tls.Certificate, error) = (*webui.Authority)(nil).Certificate

const maxNotices = 64 << 10

// ways reads the file of notices. It holds secrets, so others must not be able
// to read it.
func (f *frontends) ways(ctx context.Context) ([]webui.Notice, error) {
	if f.Page.Notices == "" {
		return nil, nil
	}
	file, err := os.Open(f.Page.Notices)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%q holds addresses that are secrets, and others can read it (%v); chmod 600 it", filepath.Clean(f.Page.Notices), err)
	}
	text, err := atomicfile.ReadOpen(file, maxNotices)
	if err != nil {
		return nil, err
	}
	ways, err := webui.ParseWays(string(text))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", f.Page.Notices, err)
	}
	secret := f.Page.Secret
	if secret == nil {
		secret = func(context.Context, string) (bawn.Secret, error) {
			return bawn.Secret{}, errors.New("there is no vault here")
		}
	}
	return webui.Open(ctx, ways, secret)
}

// notify tells humans of questions that wait, as long as the queue says so.
func (f *frontends) notify(ctx context.Context) {
	changes := make(chan webui.Change)
	go func() {
		defer close(changes)
		for ctx.Err() == nil {
			if err := f.relate(ctx, changes); err != nil && ctx.Err() == nil {
				f.Log.Warn("watch for notices", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	f.page.Notifier(f.Page.NoticeAfter).Run(ctx, changes)
}

// relate passes changes of the queue on until it ends the channel. Nothing but
// these fields reaches who sends notices.
func (f *frontends) relate(ctx context.Context, to chan<- webui.Change) error {
	from, err := f.Queue.Watch(ctx)
	if err != nil {
		return err
	}
	for r := range from {
		c := webui.Change{ID: r.ID, Session: r.Session, Agent: r.Agent, Kind: r.Action.Kind, Pending: r.State == approval.Pending}
		select {
		case to <- c:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// busy tells of each call, so that a relay that was started on demand stays.
func (f *frontends) busy(a *api.API) http.Handler {
	if f.Busy == nil {
		return a
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer f.Busy()()
		a.ServeHTTP(w, r)
	})
}

// system describes machine and relay.
func (f *frontends) system() *bawnv1.SystemServiceGetResponse {
	f.once.Do(func() {
		if f.Mechanisms != nil {
			f.mechanisms = f.Mechanisms()
		}
	})
	machine, _ := os.Hostname() // "": unknown
	return &bawnv1.SystemServiceGetResponse{
		Version: f.Version, Machine: api.Line(strings.ToValidUTF8(machine, "?")), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Started: timestamppb.New(f.started), Mechanisms: f.mechanisms,
	}
}

// status describes how the relay runs.
func (f *frontends) status(ctx context.Context) (*bawnv1.SystemServiceStatusResponse, error) {
	pending, err := f.Queue.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &bawnv1.SystemServiceStatusResponse{
		Pid: int64(os.Getpid()), Started: timestamppb.New(f.started), Version: f.Version, Pending: int32(len(pending)), OnDemand: f.OnDemand, Unit: f.Unit,
	}
	if f.page == nil {
		return out, nil
	}
	devices, err := f.page.Devices(ctx)
	out.Page, out.Devices = webui.Origin(f.name(), f.port), int32(len(devices))
	return out, err
}
