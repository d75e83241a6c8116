package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// A Peer is a process that takes samples when it is asked to, so that several
// of them, each in its own surroundings, can take turns.
type Peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	enc *json.Encoder
	dec *json.Decoder
}

// answer is one line of a peer.
type answer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// StartPeer starts a program that calls Serve. Its standard error is ours.
func StartPeer(cmd *exec.Cmd) (*Peer, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Peer{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}, nil
}

// Ask sends a question and decodes the answer into value, unless that is nil.
func (p *Peer) Ask(question, value any) error {
	if err := p.enc.Encode(question); err != nil {
		return fmt.Errorf("ask %q: %w", p.cmd.Args, err)
	}
	var a answer
	if err := p.dec.Decode(&a); err != nil {
		return fmt.Errorf("%q does not answer: %w", p.cmd.Args, err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(a.Value, value)
}

// CPU returns what the threads of the peer's own process, without its
// children, have worked so far, or 0 where /proc does not tell.
func (p *Peer) CPU() time.Duration { return processCPU(p.PID()) }

// PID is the number of the peer's process.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// Close ends the peer: its input ends, and it does.
func (p *Peer) Close() error {
	p.in.Close()
	return p.cmd.Wait()
}

// Kill ends a peer that might not end by itself.
func (p *Peer) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	return err
}

// Serve answers questions from in on out until in ends.
func Serve[Q any](in io.Reader, out io.Writer, reply func(Q) (any, error)) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q Q
		if err := dec.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a answer
		value, err := reply(q)
		if err != nil {
			a.Error = err.Error()
		} else if a.Value, err = json.Marshal(value); err != nil {
			return err
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

// Run runs a command to its end and returns how long that took, with the
// processor time of it and of what it waited for. Anything but success is an
// error, with the end of what the command wrote to its standard error, if that
// is a file of the caller's.
func Run(cmd *exec.Cmd) (Sample, error) {
	began := time.Now()
	err := cmd.Run()
	wall := time.Since(began)
	if err != nil {
		return Sample{}, fmt.Errorf("%q: %w%s", cmd.Args, err, complaint(cmd.Stderr))
	}
	return Sample{Wall: wall, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// complaint is the last that was written to a file.
func complaint(w io.Writer) string {
	f, ok := w.(*os.File)
	if !ok {
		return ""
	}
	text := make([]byte, 1000)
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "" // a terminal or a pipe can't be read again
	}
	n, _ := f.ReadAt(text, max(0, end-int64(len(text))))
	return "\n" + string(text[:n])
}
