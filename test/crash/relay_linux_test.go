package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/peercred"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/testenv"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// kills is how often the relay is killed, and sessions how many ask it
// meanwhile.
var kills = testenv.Some(200, 60)

const sessions = 5

// TestRelayKilled kills the relay again and again, while the commands of several
// agents wait for a human who answers through it. Whatever the human allowed was
// executed once at most, what was denied never, and nothing was executed that
// the log does not allow.
func TestRelayKilled(t *testing.T) {
	r := newAccount(t)
	r.Decide(t) // so that each command is asked about
	t.Cleanup(func() {
		if pid := r.relay(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM) // or it ends by itself
		}
	})
	r.ensure()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var human sync.WaitGroup
	human.Go(func() { r.human(ctx) })
	agents := make([]*crew, sessions)
	for i := range agents {
		agents[i] = r.start("r" + strconv.Itoa(i))
	}
	for i := range kills {
		r.killRelay(i)
	}
	r.ensure()
	ended := map[string]int{}
	for _, a := range agents {
		a.end(ended)
	}
	stop()
	human.Wait()
	r.compare(ended)
}

// allowed is what the human says to a command: every fourth of a lane is denied.
func allowed(id string) bool {
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
	return err == nil && n%4 != 3
}

// ensure starts a relay where none listens.
func (r *account) ensure() {
	r.t.Helper()
	check(r.t, os.MkdirAll(r.state, 0o700))
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	p := link.Program{
		Path: filepath.Join(r.Bin, "bawnd"), Args: []string{"serve", "--on-demand"}, Environ: r.Env,
		Socket: filepath.Join(r.runtime(), places.APISocket), Log: filepath.Join(r.state, "relay.log"),
	}
	check(r.t, p.Ensure(ctx))
}

// relay returns the process that listens where hosts ask, or 0.
func (r *account) relay() int {
	conn, err := net.Dial("unix", filepath.Join(r.runtime(), places.HostsSocket))
	if err != nil {
		return 0
	}
	defer conn.Close()
	peer, err := peercred.Of(conn)
	if err != nil {
		return 0
	}
	defer peer.Close()
	return peer.PID
}

// killRelay kills the relay that runs, as it comes up or at work. Every other
// time the sessions have to start the next one.
func (r *account) killRelay(i int) {
	r.t.Helper()
	if i%2 == 0 {
		r.ensure()
	}
	pid := 0
	r.until("a relay", func() bool { pid = r.relay(); return pid > 0 })
	time.Sleep(time.Duration(rand.IntN(10+i%3*50)) * time.Millisecond)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		r.t.Fatal(err)
	}
	r.until("its end", func() bool { return r.relay() != pid })
}

// human answers all that is asked, as long as ctx lasts.
func (r *account) human(ctx context.Context) {
	for ctx.Err() == nil {
		r.answer(ctx, bawnv1connect.NewApprovalServiceClient(api.Client(filepath.Join(r.runtime(), places.APISocket)), "http://relay"))
		time.Sleep(5 * time.Millisecond) // the relay is gone, or the test over
	}
}

// answer answers until the relay is gone.
func (r *account) answer(ctx context.Context, relay bawnv1connect.ApprovalServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	changes, err := relay.Watch(ctx, &bawnv1.ApprovalServiceWatchRequest{})
	if err != nil {
		return
	}
	defer changes.Close()
	for changes.Receive() {
		rec := changes.Msg().GetApproval()
		_, id, ok := strings.Cut(rec.GetAction().GetResource(), " "+markWord+" ")
		if rec.GetState() != bawnv1.ApprovalState_APPROVAL_STATE_PENDING || !ok {
			continue
		}
		a := &bawnv1.ApprovalServiceAnswerRequest{Id: rec.GetId(), Verdict: bawnv1.Verdict_VERDICT_DENY}
		if allowed(id) {
			a.Verdict = bawnv1.Verdict_VERDICT_ALLOW
		}
		_, _ = relay.Answer(ctx, a) // lost, or answered already: what stands is in the log
	}
}

// A crew is a session with its agent.
type crew struct {
	r     *account
	name  string
	cmd   *exec.Cmd
	input io.Closer
	out   io.Reader
}

// start starts a split session.
func (r *account) start(name string) *crew {
	r.t.Helper()
	cmd := r.Command(context.Background(), r.words(nil, name)...)
	in, err := cmd.StdinPipe()
	check(r.t, err)
	out, err := cmd.StdoutPipe()
	check(r.t, err)
	cmd.Stderr = os.Stderr
	check(r.t, cmd.Start())
	r.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &crew{r: r, name: name, cmd: cmd, input: in, out: out}
}

// end waits for the agent's end and adds how its commands ended.
func (c *crew) end(ended map[string]int) {
	c.r.t.Helper()
	check(c.r.t, c.input.Close())
	timer := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	text, err := io.ReadAll(c.out)
	check(c.r.t, err)
	if err := c.cmd.Wait(); err != nil || !timer.Stop() {
		c.r.t.Fatalf("the session of %s ends with %v", c.name, err) // the others would not end either
	}
	for line := range strings.Lines(string(text)) {
		var id string
		var code int
		if _, err := fmt.Sscan(line, &id, &code); err != nil {
			c.r.t.Errorf("%s says %q", c.name, line)
		}
		ended[id] = code
	}
}

// compare sets what the agents saw beside what was done and what is recorded.
func (r *account) compare(ended map[string]int) {
	t := r.t
	effects, decisions := r.effects(), r.decisions()
	done, refused, unheard := 0, 0, 0
	for id, code := range ended {
		switch {
		case code == 0 && len(effects[id].at) != 1:
			t.Errorf("%s ended with 0 and was executed %d times", id, len(effects[id].at))
		case code == 0:
			done++
		case code == 126 && !allowed(id):
			refused++
		case code == 126:
			unheard++
		default:
			t.Errorf("%s ended with %d", id, code)
		}
		if code == 126 && len(effects[id].at) > 0 {
			t.Errorf("%s was refused, and executed", id)
		}
		if len(decisions[id]) != 1 {
			t.Errorf("the log has %d decisions about %s: %v", len(decisions[id]), id, decisions[id])
		}
	}
	for id, e := range effects {
		if !allowed(id) {
			t.Errorf("%s was denied, and executed", id)
		}
		r.recorded(id, e, decisions[id])
	}
	t.Logf("%d kills: %d commands executed, %d denied, %d refused because nobody could be asked", kills, done, refused, unheard)
	if done < kills/10 || refused < kills/40 || unheard > done/5 {
		t.Errorf("%d executed, %d denied, %d refused unasked: too little to prove anything", done, refused, unheard)
	}
}
