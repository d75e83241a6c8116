package mitm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

const (
	heldMemory = 1 << 20   // bytes of a body that are held in memory
	maxHeld    = 128 << 20 // bytes of a body that are held at all
	maxFiles   = 4         // bodies of a session that are held in files at a time
)

var errHeld = fmt.Errorf("it has more than %d MiB", maxHeld>>20)

// A held body is one that must be known as a whole before it is sent: in
// memory at first, then in a file without a name.
type held struct {
	busy chan struct{} // has room for those in files
	mu   sync.Mutex    // what sends it may still read when it is closed
	mem  []byte
	size int64
	read int64
	file *os.File
}

// Write appends p.
func (h *held) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.size+int64(len(p)) > maxHeld {
		return 0, errHeld
	}
	if h.file == nil && len(h.mem)+len(p) > heldMemory {
		if err := h.spill(); err != nil {
			return 0, err
		}
	}
	h.size += int64(len(p))
	if h.file == nil {
		h.mem = append(h.mem, p...)
		return len(p), nil
	}
	return h.file.Write(p)
}

func (h *held) spill() error {
	select {
	case h.busy <- struct{}{}:
	default:
		return fmt.Errorf("%d long bodies of the session are held already; send one after the other", maxFiles)
	}
	f, err := os.CreateTemp("", "bawn-body-*")
	if err != nil {
		<-h.busy
		return errors.New("no file could be made")
	}
	h.file = f
	if err := os.Remove(f.Name()); err != nil {
		return errors.New("no file could be made")
	}
	_, err = f.Write(h.mem)
	h.mem = nil
	return err
}

// Read reads from the beginning on.
func (h *held) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read >= h.size {
		return 0, io.EOF
	}
	var n int
	var err error
	if h.file != nil {
		n, err = h.file.ReadAt(p, h.read)
	} else {
		n = copy(p, h.mem[h.read:])
	}
	h.read += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Close gives memory and file back. It may be called again.
func (h *held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mem, h.size = nil, 0
	if h.file == nil {
		return nil
	}
	f := h.file
	h.file = nil
	<-h.busy
	return f.Close()
}
