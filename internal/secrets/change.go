package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// change runs edit on the index and the stores under the lock of all processes. Then it
// deletes values that nothing refers to, and returns those that it could not delete, by
// id.
func (v *Vault) change(ctx context.Context, edit func(*index) error) (map[string]error, error) {
	if err := makeOwnDir(v.opts.ConfigDir); err != nil {
		return nil, err
	}
	var after *index
	err := v.update(func(idx *index) error {
		after = idx
		return edit(idx)
	})
	if err != nil || len(after.Pending) == 0 {
		return nil, err
	}
	left := map[string]error{}
	err = v.update(func(idx *index) error {
		v.sweep(ctx, idx, left)
		return nil
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, err := range left {
		v.note(err.Error())
	}
	return left, err
}

// update is one locked change of the index's file.
func (v *Vault) update(edit func(*index) error) error {
	if _, err := v.index(); err != nil { // also its owner and mode
		return err
	}
	return atomicfile.Update(v.indexPath(), 0o600, maxIndex, func(old []byte) ([]byte, error) {
		idx, err := parseIndex(v.indexPath(), old)
		if err != nil {
			return nil, err
		}
		if err := edit(idx); err != nil {
			return nil, err
		}
		return idx.encode(), nil
	})
}

func (idx *index) encode() []byte {
	if idx.Secrets == nil {
		idx.Secrets = []record{}
	}
	data, err := json.MarshalIndent(idx, "", "  ")
	if err != nil {
		panic("BUG(bawn): the index has no value that JSON lacks: " + err.Error())
	}
	return append(data, '\n')
}

// begin notes in the locked index that a value will be written to the store.
func (v *Vault) begin(idx *index, store, id string) error {
	if store == File {
		if err := v.files.use(idx.Files); err != nil {
			return err
		}
		idx.Files = v.files.state
	}
	idx.Pending = append(idx.Pending, leftover{store, id})
	return atomicfile.Write(v.indexPath(), idx.encode(), 0o600)
}

// sweep deletes what is pending. What can't be deleted now stays noted.
func (v *Vault) sweep(ctx context.Context, idx *index, left map[string]error) {
	for _, l := range slices.Clone(idx.Pending) {
		if err := v.keeping(l.Store).drop(ctx, l.ID); err != nil {
			left[l.ID] = fmt.Errorf("the value %q is still in the %s: %w", l.ID, l.Store, err)
			continue
		}
		_ = os.Remove(v.useFile(l.ID))
		idx.dropPending(l.ID)
	}
}
