package link

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A stranger is the host of another session, which says what it likes.
type stranger struct {
	*rig
	*line
	told []approval.Record
}

func (r *rig) stranger() *stranger {
	r.Helper()
	key := r.key()
	conn, err := net.Dial("unix", r.path)
	must(r.T, err)
	r.Cleanup(func() { conn.Close() })
	must(r.T, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	s := &stranger{rig: r, line: lineTo(r.T, conn)}
	var ready reply
	must(r.T, s.receive(&ready))
	s.say(request{Key: key, Secret: rand.Text()}, request{Hello: &hello{Session: "stranger"}})
	return s
}

// say also waits until it must have been heard.
func (s *stranger) say(all ...request) {
	s.Helper()
	for _, r := range all {
		must(s.T, s.send(r))
		time.Sleep(20 * time.Millisecond)
	}
}

// hears returns the first reply that it waits for.
func (s *stranger) hears(what string, is func(*reply) bool) reply {
	s.Helper()
	for {
		var r reply
		if err := s.receive(&r); err != nil {
			s.Fatalf("%s is never heard: %v", what, err)
		}
		if r.Record != nil {
			s.told = append(s.told, *r.Record)
		}
		if r.Failed != nil && r.Failed.Record != nil {
			s.told = append(s.told, *r.Failed.Record)
		}
		if is(&r) {
			return r
		}
	}
}

// answers tries to answer a question, and wants the error "unknown".
func (s *stranger) answers(id string) {
	s.Helper()
	s.say(request{Answer: &answer{7, id, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "stranger"}}})
	r := s.hears("what comes of its answer", func(r *reply) bool { return r.Number == 7 })
	if r.Record != nil || r.Failed == nil || r.Failed.Code != "unknown" {
		s.Errorf("it answers another's question: %+v, %+v", r.Record, r.Failed)
	}
}

// asks wants to hear that an ID is another's.
func (s *stranger) asks(q approval.Question) {
	s.Helper()
	s.say(request{Ask: &q})
	r := s.hears("what comes of its question", func(r *reply) bool { return r.ID == q.ID })
	if r.Answer != nil || r.Failed == nil || !errors.Is(r.Failed.err(), approval.ErrMismatch) {
		s.Errorf("another's ID: answer %+v, %+v; want that it is taken", r.Answer, r.Failed)
	}
}

// thefts are what a stranger may try who knows all of a question, which is more
// than it is told.
var thefts = map[string]func(s *stranger, q approval.Question){
	"answer": func(s *stranger, q approval.Question) { s.answers(q.ID) },
	"the same": func(s *stranger, q approval.Question) {
		s.asks(q)
		s.answers(q.ID)
	},
	"its owner's name": func(s *stranger, q approval.Question) {
		e, err := s.store.Get(s.Context(), q.ID)
		must(s.T, err)
		q.Owner = e.Owner
		s.asks(q)
		s.say(request{Retract: &q})
		s.answers(q.ID)
	},
	"its ID": func(s *stranger, q approval.Question) {
		other := about("stranger", "anything")
		other.ID = q.ID
		s.asks(other)
		s.answers(q.ID)
	},
	"at once": func(s *stranger, q approval.Question) { // the answer comes before the prompter has looked at the question
		other := about("stranger", "anything")
		other.ID = q.ID
		must(s.T, s.send(request{Ask: &other}))
		must(s.T, s.send(request{Answer: &answer{8, q.ID, yes}}))
		if r := s.hears("what comes of both", func(r *reply) bool { return r.Number == 8 }); r.Failed == nil {
			s.Error("it answers another's question")
		}
	},
	"retract":  func(s *stranger, q approval.Question) { s.say(request{Retract: &q}) },
	"withdraw": func(s *stranger, q approval.Question) { s.say(request{Ask: &q}, request{Withdraw: q.ID}) },
	"leave": func(s *stranger, q approval.Question) {
		s.say(request{Hello: &hello{q.Session, q.Parent}}, request{Ask: &q}, request{Withdraw: q.ID}, request{Retract: &q})
		s.conn.Close()
		time.Sleep(20 * time.Millisecond)
	},
	"as its child": func(s *stranger, q approval.Question) { // same questions of a tree are one
		s.say(request{Hello: &hello{"stranger", q.Session}})
		same := about("stranger", q.Action.Resource)
		same.Parent = q.Session
		own := same.ID
		s.say(request{Ask: &same}, request{Answer: &answer{9, own, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "stranger"}}})
		if r := s.hears("its own answer", func(r *reply) bool { return r.ID == own }); r.Answer == nil { // the control
			s.Errorf("it can't answer what it has asked itself: %+v", r.Failed)
		}
	},
}

// TestOthersQuestions: the host of another session can't answer, take back or
// see what a session asks, whatever it knows of it: before the relay has died
// and after.
func TestOthersQuestions(t *testing.T) {
	for name, steal := range thefts {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " restarted ", restarted), func(t *testing.T) {
				t.Parallel()
				stolen(newRig(t), steal, restarted)
			})
		}
	}
}

func stolen(r *rig, steal func(*stranger, approval.Question), restarted bool) {
	c := r.dial(Options{Session: "victim"})
	q, err := approval.Tidy(about("victim", "git push"), time.Now())
	must(r.T, err)
	got := begin(r.Context(), c, q)
	r.pending(1)
	if restarted {
		r.down()
		r.up(func(net.Conn) error { return nil })
	}
	s := r.stranger()
	steal(s, q)
	for _, rec := range s.told {
		if rec.Session != "stranger" {
			r.Errorf("it is told of another's question: %+v", rec)
		}
	}
	if rec, err := r.queue.Get(r.Context(), q.ID); err != nil || rec.State != approval.Pending || rec.Waiting != 1 {
		r.Errorf("the question is %q with %d waiting, %v; want it to wait as before", rec.State, rec.Waiting, err)
	}
	rec, err := c.Answer(testenv.Context(r), q.ID, no) // its own host can
	if err != nil || rec.Owner != "" {
		r.Errorf("its own host answers: %+v, %v", rec, err)
	}
	if a := testenv.Receive(r, "the asker's answer", got); a.By != "no" || a.err != nil {
		r.Errorf("asker: %+v", a)
	}
	s = r.stranger() // when it is settled nothing of it is told either
	s.asks(q)
	s.answers(q.ID)
}

// TestTooMuchIsFinal: why a question is refused arrives as it was, so that
// nobody asks on.
func TestTooMuchIsFinal(t *testing.T) {
	r := newRig(t)
	c := r.dial(Options{Session: "s"})
	for n := range approval.MaxPerSession {
		begin(t.Context(), c, about("s", fmt.Sprint(n)))
	}
	r.pending(approval.MaxPerSession)
	_, err := c.Ask(t.Context(), about("s", "one more"))
	var full *approval.FullError
	if !errors.As(err, &full) || full.Limit != approval.MaxPerSession || !strings.Contains(err.Error(), "of this session") {
		t.Errorf("one more: %v", err)
	}
	if err := failed(fmt.Errorf("it is so: %w", approval.ErrSpent)).err(); !errors.Is(err, approval.ErrSpent) {
		t.Errorf("a share that is used up arrives as %v", err)
	}
}
