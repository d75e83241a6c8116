//go:build linux || darwin

package runner

import (
	"sync"

	"github.com/bawn-dev/bawn/internal/approval/asking"
)

// attend sits at the session's terminal as long as somebody looks at it: a
// question that is put to nobody would only keep the guest's output back.
func (w *watch) attend(prompter *asking.Prompter) (leave func()) {
	var done sync.WaitGroup
	end := make(chan struct{})
	done.Go(func() {
		var leave func()
		for {
			var watched bool
			select {
			case watched = <-w.session.Watched:
			case <-end:
				watched = false
			}
			switch {
			case watched && leave == nil:
				leave = prompter.Sit(w.tty)
			case !watched && leave != nil:
				leave()
				leave = nil
			}
			select {
			case <-end:
				if leave == nil {
					return
				}
			default:
			}
		}
	})
	return func() { close(end); done.Wait() }
}
