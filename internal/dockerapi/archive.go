package dockerapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// archive serves docker cp: tar streams into containers and out of them. The engine mounts
// the container's volumes for each stream, by path, so the container is paused meanwhile.
func (b *Broker) archive(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	at := c.query["path"]
	for _, k := range kernelPlaces {
		if within(path.Clean("/"+at), k) {
			return refuse(RuleHost, "use exec", "nothing is copied to %.200q or from there: the place is the kernel's", at)
		}
	}
	if strings.ContainsRune(at, 0) || len(at) > maxPath {
		return bad("the path %.100q can't be one", at)
	}
	m := message{method: r.Method, path: "/containers/" + child.id + "/archive", query: url.Values{"path": {at}}}
	var body *upload
	if r.Method == http.MethodPut {
		for _, name := range []string{"noOverwriteDirNonDir", "copyUIDGID"} {
			if c.flag(name) {
				m.query.Set(name, "1")
			}
		}
		body = startUpload(r.Body)
		m.raw, m.kind = body, "application/x-tar"
	}
	done, err := b.atRest(r.Context(), child, child.mounts)
	if err != nil {
		return err
	}
	// This request outlives the guest's connection: the container may only go on when the
	// engine has answered, and so has mounted the volumes.
	ctx, cancel := outliving(r.Context(), createTime)
	defer cancel()
	resp, err := b.engine.stream(ctx, m)
	finish := sync.OnceFunc(func() { done(err == nil || notMade(err)) })
	defer finish()
	if body != nil {
		if why := body.refused(); why != nil {
			if resp != nil {
				resp.Body.Close()
			}
			return why
		}
	}
	if err != nil {
		return b.forgetIfGone(child, err)
	}
	defer resp.Body.Close()
	if r.Method != http.MethodGet { // the engine has done it, and the guest may go on once it knows
		finish()
	}
	given := context.AfterFunc(r.Context(), cancel)
	defer given()
	passOn(w, resp)
	return nil
}

// outliving returns a context that ends so long after ctx has ended, or with end.
func outliving(ctx context.Context, by time.Duration) (longer context.Context, end func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// cutOff is a stream that ends at the first read error. A truncated tar stream
// is an error for the engine, so it answers instead of waiting.
type cutOff struct{ from io.Reader }

// Read never fails.
func (c cutOff) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = io.EOF
	}
	return n, err
}
