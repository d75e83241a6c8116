package git

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// lfsBatch names the one LFS request whose body decides.
const lfsBatch = "lfs-batch"

// maxBatch bounds the body of a batch request; git-lfs asks for 100 objects at
// a time, some 12 kB.
const maxBatch = 1 << 20

// locks matches the LFS locking API below info/lfs
// (git-lfs docs/api/locking.md).
var locks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^locks(/verify|/[0-9A-Za-z_-]{1,128}/unlock)?$`) })

// lfs reads requests to the LFS API (git-lfs docs/api/batch.md). Objects
// themselves go to addresses that the answer names, which are requests like
// any other.
func lfs(r *http.Request, path, query string) (Operation, string, bool, error) {
	repo, rest, ok := strings.Cut(path, "/info/lfs/")
	if !ok {
		return Operation{}, "", false, nil
	}
	name, err := repoName(repo)
	if err != nil {
		return Operation{}, "", false, err
	}
	op := Operation{Kind: Push, Repo: name, LFS: true}
	switch {
	case rest == "objects/batch" && query == "" && r.Method == http.MethodPost:
		return op, lfsBatch, true, nil
	case rest == "locks" && r.Method == http.MethodGet:
		op.Kind = Fetch
		return op, "", true, nil
	case locks().MatchString(rest) && query == "" && r.Method == http.MethodPost:
		return op, "", true, nil
	}
	return Operation{}, "", false, nil
}

// readBatch reads the operation of a batch request. An "operation" that comes
// twice, or in other letters, is read differently by different servers.
func readBatch(op Operation, body io.Reader) (Operation, io.ReadCloser, error) {
	op.Kind = None
	text, err := io.ReadAll(io.LimitReader(body, maxBatch+1))
	if err != nil {
		return op, nil, fmt.Errorf("read the LFS batch: %w", err)
	}
	if len(text) > maxBatch {
		return op, nil, malformed("an LFS batch of more than %d bytes", maxBatch)
	}
	operation, err := batchOperation(text)
	if err != nil {
		return op, nil, malformed("LFS batch: %v", err)
	}
	kind, ok := map[string]Kind{"download": Fetch, "upload": Push}[operation]
	if !ok {
		return op, nil, malformed(`LFS operation %.80q; want "download" or "upload"`, operation)
	}
	op.Kind = kind
	return op, io.NopCloser(bytes.NewReader(text)), nil
}

func batchOperation(text []byte) (operation string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", errors.New("it is no JSON object")
	}
	found := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", err
		}
		name, _ := key.(string)
		if !strings.EqualFold(name, "operation") {
			continue
		}
		if found || name != "operation" {
			return "", errors.New("it names its operation twice or oddly")
		}
		found = true
		if err := json.Unmarshal(value, &operation); err != nil {
			return "", err
		}
	}
	if _, err := d.Token(); err != nil {
		return "", err
	}
	if d.More() {
		return "", errors.New("something follows its end")
	}
	return operation, nil
}
