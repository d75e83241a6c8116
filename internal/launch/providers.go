package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/bwrap"
	"github.com/bawn-dev/bawn/internal/sandbox/gvisor"
	hostprovider "github.com/bawn-dev/bawn/internal/sandbox/host"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/sandbox/seatbelt"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A Setting configures a provider.
type Setting struct {
	Probes    string         // directory for the outcomes of probes, absolute; "" keeps none
	Config    *config.Config // the provider's own keys; nil stands for the defaults
	environ   []string
	preforked *native.Preforked
}

// Environ is the environment in which a container engine is found: PATH,
// DOCKER_HOST. Leaving out a session's writable files takes hundreds of system
// calls. The native provider needs no engine, so only the providers that do call
// Environ.
func (s Setting) Environ() []string { return engineEnviron(s.environ, s.Config) }

// Cache is the file in which the outcome of a provider's probe is kept, "" for
// none.
func (s Setting) Cache(name string) string {
	if s.Probes == "" {
		return ""
	}
	return filepath.Join(s.Probes, "probe-"+name)
}

// A Maker makes a provider. It starts no other program: trials happen when
// Capabilities is called.
type Maker func(Setting) sandbox.Provider

// A listed provider is one that can be named.
type Listed struct {
	Name  string
	maker Maker // nil: only bawnd has it (Env.Providers)
	// wanted says that the provider may be chosen where none is named; nil is
	// for always.
	wanted func(Setting) bool
}

// never is for providers that are only used by name.
func never(Setting) bool { return false }

// onMac is for what no other system has.
func onMac(Setting) bool { return runtime.GOOS == "darwin" }

// Roll lists every provider, the strongest first: where none is named, they are
// asked in this order. A new one gets a line here and its import; one that needs
// more than cmd/bawn may link has no maker here and one in cmd/bawnd.
var Roll = []Listed{
	{Name: layout.NativeName, maker: nativeProvider},
	{Name: bwrap.Name, maker: func(s Setting) sandbox.Provider { return bwrap.New(s.Cache(bwrap.Name), lookup(s.Environ(), "PATH")) }},
	{Name: gvisor.Name, maker: func(s Setting) sandbox.Provider { return gvisor.New(s.gvisor()) }},
	{Name: DockerName, wanted: image},
	{Name: layout.LandlockName, maker: func(s Setting) sandbox.Provider { return native.NewLandlock(s.Native()) }},
	{Name: seatbelt.Name, maker: func(Setting) sandbox.Provider { return seatbelt.New() }, wanted: onMac},
	{Name: hostprovider.Name, maker: func(Setting) sandbox.Provider { return hostprovider.New() }, wanted: never},
}

// nativeProvider makes the sandbox from the one that has been begun, if any.
func nativeProvider(s Setting) sandbox.Provider {
	p := native.New(s.Native())
	p.Adopt(s.preforked)
	return p
}

// DockerName is the provider whose client would double bawn's size and start
// time, so bawnd has it.
const DockerName = "docker"

// image reports whether the configuration names one for containers: without it
// there is nothing to start.
func image(s Setting) bool { return s.Config != nil && s.Config.Docker().Image != "" }

// Native is the file of the native rungs' probe, which they share.
func (s Setting) Native() string {
	if s.Probes == "" {
		return ""
	}
	return filepath.Join(s.Probes, "probe")
}

// Forget drops the known state of a provider, so that it is tried anew.
func (s Setting) Forget(name string) {
	file := s.Cache(name)
	if name == layout.NativeName || name == layout.LandlockName {
		file = s.Native()
	}
	if file != "" {
		_ = os.Remove(file) // missing ones are looked for
	}
}

// gvisor is what provider gvisor is made of.
func (s Setting) gvisor() gvisor.Options {
	o := gvisor.Options{Path: lookup(s.Environ(), "PATH"), Cache: s.Cache(gvisor.Name), Native: s.Native()}
	if s.Config != nil {
		o.Runsc, o.Unprotected = s.Config.Runsc(), s.Config.GVisorUnprotected()
	}
	return o
}

// lookup returns a variable of an environment, "" for none.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// probesDir is where the outcomes of probes are kept.
func probesDir(e *Env) string {
	return filepath.Join(settings.BaseDir(&e.World, "XDG_CACHE_HOME", ".cache"), "bawn")
}

// SettingOf is what providers are made of here.
func SettingOf(e *Env, cfg *config.Config) Setting {
	return Setting{Probes: probesDir(e), Config: cfg, environ: e.Environ, preforked: e.preforked}
}

// ProviderNames lists what --provider takes.
func ProviderNames() []string {
	names := make([]string, len(Roll))
	for i, l := range Roll {
		names[i] = l.Name
	}
	return names
}

// Find returns the provider of that name, and false if the name is unknown. In bawn
// a provider that only bawnd has is nil.
func (e *Env) Find(name string, s Setting) (sandbox.Provider, bool) {
	i := slices.IndexFunc(Roll, func(l Listed) bool { return l.Name == name })
	if i < 0 {
		return nil, false
	}
	if maker := e.Providers[name]; maker != nil {
		return maker(s), true
	}
	if Roll[i].maker == nil {
		return nil, true
	}
	return Roll[i].maker(s), true
}

// AbsentProvider says that this program is without a provider that bawnd has.
type AbsentProvider struct {
	name string
	Part string // its kind, if it is no provider
}

func (a AbsentProvider) Error() string { return a.what() + " is part of " + remote.Program }

func (a AbsentProvider) what() string {
	if a.Part != "" {
		return a.Part
	}
	return fmt.Sprintf("provider %q", a.name)
}

// ErrNoBawnd says that a provider is nowhere.
var ErrNoBawnd = errors.New("it is part of bawnd, which is not installed beside bawn")

// Absent says why a provider that exists can't be made here.
func (e *Env) Absent(name string) error {
	if _, err := remote.Find(); err != nil || e.Providers != nil {
		return &verb.Error{
			Code: verb.ExitInternal, Err: fmt.Errorf("provider %q: %w", name, ErrNoBawnd),
			Hint: doctor.Install,
		}
	}
	return AbsentProvider{name: name}
}

// becameVariable marks what bawn has become: whatever stands where bawnd should
// be is not started a second time.
const becameVariable = "BAWN_BECAME"

// becomeWhole makes this process bawnd's, which has every provider, with the
// same words; it returns with an error only.
func (e *Env) becomeWhole(why AbsentProvider) error {
	e.preforked.Abandon() // what executes another program keeps its children
	path, err := remote.Find()
	if err == nil && e.Getenv(becameVariable) != "" {
		err = fmt.Errorf("%q is no %s: it is without %s as well", path, remote.Program, why.what())
	}
	if err == nil {
		err = e.again()
	}
	if err == nil {
		err = syscall.Exec(path, append([]string{remote.Program}, e.Args...), append(slices.Clip(e.Environ), becameVariable+"=1"))
		err = fmt.Errorf("start %q: %w", path, err)
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: doctor.Install}
}

// Elsewhere makes bawnd of this process if err says that bawnd has the missing
// part.
func (e *Env) Elsewhere(err error) error {
	var absent AbsentProvider
	switch {
	case !errors.As(err, &absent):
		return err
	case e.spec != nil && e.spec.Parent != nil: // its parent holds on to this process
		return &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("a guest's session can't have it: %w", err), Hint: "leave out --provider: it has that of the session that starts it"}
	case e.host != nil: // who views it does
		return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "name it: --provider " + absent.name}
	}
	return e.becomeWhole(absent)
}
