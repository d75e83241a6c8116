package approval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

const (
	raceQuestions = 1000
	racers        = 50
)

// TestRace has 50 humans answer 1,000 questions, each all of them.
func TestRace(t *testing.T) {
	q := queue(t, Options{})
	var asked sync.WaitGroup
	answers := make([]bawn.Answer, raceQuestions)
	ids := make([]string, raceQuestions)
	for n := range raceQuestions {
		question := ask(fmt.Sprint("s", n%100), fmt.Sprint(n))
		ids[n] = question.ID
		asked.Go(func() {
			var err error
			if answers[n], err = q.Ask(t.Context(), question); err != nil {
				t.Error(err)
			}
		})
	}
	testenv.Until(t, "all questions", func() bool { list, _ := q.List(t.Context()); return len(list) == raceQuestions })
	var wins [raceQuestions]atomic.Int32
	var by [raceQuestions]atomic.Value
	var racing sync.WaitGroup
	for r := range racers {
		racing.Go(func() {
			for i := range raceQuestions {
				n := (i*7 + r*31) % raceQuestions
				a := bawn.Answer{Verdict: bawn.Verdict(r % 2 * 2), By: fmt.Sprint("racer", r)}
				rec, err := q.Answer(context.Background(), ids[n], a)
				var answered *AnsweredError
				switch {
				case err == nil:
					wins[n].Add(1)
					by[n].Store(rec.Answer.By)
				case !errors.As(err, &answered):
					t.Errorf("answer: %v", err)
				}
			}
		})
	}
	racing.Wait()
	asked.Wait()
	for n := range raceQuestions {
		if wins[n].Load() != 1 || by[n].Load() != answers[n].By {
			t.Errorf("question %d: %d were told to be first, the asker has %q, the winner is %v", n, wins[n].Load(), answers[n].By, by[n].Load())
		}
	}
}

func BenchmarkAskAnswer(b *testing.B) {
	q := queue(b, Options{})
	b.SetParallelism(64)
	var session atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		s := fmt.Sprint("s", session.Add(1))
		for n := 0; pb.Next(); n++ {
			question := ask(s, fmt.Sprint(n))
			p := begin(q, question)
			for {
				if _, err := q.Answer(b.Context(), question.ID, yes); err == nil {
					break
				}
			}
			<-p.done
		}
	})
}
