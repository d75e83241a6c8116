package mitm

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn"
)

// An exchange is one request with its response.
type exchange struct {
	*connection
	request Request
	in      *http.Request
	judged  *http.Request // in, as Request.Inspect left it, which is sent; nil if it was not inspected
	uses    []use
	signing *signing    // nil where the guest has not signed with a placeholder
	echo    *echo       // knows holds this request's own secrets; may be nil
	watched *WatchSet   // nil where nothing is watched for
	trailer http.Header // of the request as it goes upstream

	refused atomic.Pointer[Refusal] // set while the body is on its way
	out     atomic.Int64
	back    atomic.Int64
	result  Result
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		panic("BUG(bawn): a request without its exchange")
	}
	return x
}

// ServeHTTP decides and forwards one request.
func (c *connection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.running.Add(1)
	defer c.running.Done()
	x := &exchange{connection: c, in: r}
	x.request = Request{
		Method: r.Method, Scheme: scheme(c.target), Host: c.target.Host, Port: c.target.Port,
		Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header,
	}
	x.request.inspect = x.inspect
	defer x.done(w)
	if len(r.Method)+len(x.request.Path) > maxPath {
		x.request.Method, x.request.Path = "", "/" // for the log
		x.refuse(w, longLine)
		return
	}
	select {
	case c.requests <- struct{}{}:
		defer func() { <-c.requests }()
	default:
		x.refuse(w, busy)
		return
	}
	if refusal := x.admit(); refusal != nil {
		x.refuse(w, refusal)
		return
	}
	if r.ProtoMajor == 1 { // HTTP/2 always can
		http.NewResponseController(w).EnableFullDuplex()
	}
	c.proxy.ServeHTTP(w, x.outbound())
}

// admit has the request judged, from what costs nothing to what asks a human.
func (x *exchange) admit() *Refusal {
	if refusal := x.wellFormed(x.in); refusal != nil {
		return refusal
	}
	dropUnforwarded(x.in.Header)
	var err error
	if x.request.Readings, err = readings(x.request.Path); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Rule: "path", Reason: err.Error(), Remedy: "send the path in its plain form"}
	}
	x.upgrade()
	if refusal := x.placeholders(); refusal != nil {
		return refusal
	}
	x.offer()
	x.watch()
	if refusal := x.wrapBody(); refusal != nil {
		return refusal
	}
	if refusal := x.decide(); refusal != nil {
		return refusal
	}
	if refusal := x.verify(); refusal != nil {
		return refusal
	}
	return x.borrow()
}

// inspect gives f the request with the body that is looked through.
func (x *exchange) inspect(f func(*http.Request) error) error {
	r := x.in.Clone(x.in.Context())
	if x.request.body != nil {
		r.Body = x.request.body
	}
	if err := f(r); err != nil {
		return err
	}
	x.judged = r
	return nil
}

// dropUnforwarded deletes the fields that Connection names, which the proxy does not
// forward (RFC 9110 section 7.6.1): a request is judged by the header that the host
// gets. The proxy itself needs Upgrade and TE.
func dropUnforwarded(h http.Header) {
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); name != "Upgrade" && name != "Te" && name != "Connection" {
				h.Del(name)
			}
		}
	}
}

// upgrade keeps the upgrade to a WebSocket and drops every other, which a
// server may ignore (RFC 9110 section 7.8).
func (x *exchange) upgrade() {
	h := x.in.Header
	if strings.EqualFold(strings.Join(h.Values("Upgrade"), ","), "websocket") && x.in.ProtoMajor == 1 {
		x.request.Upgrade = "websocket"
		return
	}
	h.Del("Upgrade")
	h.Del("Http2-Settings")
}

// placeholders finds the secrets to put in, and refuses placeholders anywhere
// else.
func (x *exchange) placeholders() *Refusal {
	if len(x.Bindings) == 0 {
		x.request.Foreign = x.foreign(x.in.Header, x.request.Query)
		return nil
	}
	header, query := x.in.Header, x.request.Query
	if x.target.TLS {
		x.uses, header, query = find(x.bound, header, query)
		var refusal *Refusal
		if header, refusal = x.signatures(header); refusal != nil {
			return refusal
		}
	}
	if i := x.misplaced(x.request.Path, query, header); i >= 0 {
		return misused(x.Bindings[i], x.whyMisplaced("stands where it may not be put"))
	}
	x.request.Secrets = names(x.uses)
	x.request.Foreign = x.foreign(header, query)
	return nil
}

// offer adds a secret to a request that brings no credential along. An upgraded
// connection has no end at which returned secrets are looked for.
func (x *exchange) offer() {
	if x.Offer == nil || !x.target.TLS || x.request.Upgrade != "" || len(x.uses)+len(x.request.Foreign) > 0 {
		return
	}
	if b, ok := x.Offer(x.in.Context(), x.request); ok {
		x.uses, x.request.Offered = []use{{binding: b, added: true}}, b.Secret
	}
}

func (x *exchange) whyMisplaced(otherwise string) string {
	switch {
	case len(x.bound) == 0:
		return fmt.Sprintf("may not be sent to %q", x.target.Host)
	case !x.target.TLS:
		return "may not be sent without TLS"
	}
	return otherwise
}

// wrapBody has the body looked through on its way.
func (x *exchange) wrapBody() *Refusal {
	if x.in.ContentLength == 0 || x.in.Body == nil || x.in.Body == http.NoBody {
		return nil
	}
	b := &body{guest: x.in.Body, encoding: contentEncoding(x.in.Header), refuse: x.inBody, method: x.inField, end: x.bodyEnded, sent: x.sending}
	if b.encoding == "aws-chunked" && x.signing != nil { // its chunks are as they are
		b.encoding = ""
	}
	x.watchBody(b)
	if len(x.Bindings) > 0 {
		if b.encoding != "" && b.encoding != "gzip" {
			return &Refusal{
				Status: http.StatusUnsupportedMediaType, Rule: "secret",
				Reason: fmt.Sprintf("a body packed as %q can't be looked through for placeholders of secrets", b.encoding),
				Remedy: "send it packed with gzip, or not packed",
			}
		}
		b.scan = newScanner(x.Server.placeholders)
	}
	if x.Limited == nil || x.Limited(x.request) {
		var refusal *Refusal
		if b.fields, refusal = fields(x.in.Method, x.in.Header, b.encoding); refusal != nil {
			return refusal
		}
	}
	x.request.body = b
	return nil
}

// inBody refuses a body that holds a placeholder.
func (x *exchange) inBody(needle int) error {
	b := x.Bindings[x.Server.placeholders.owner[needle]]
	refusal := misused(b, x.whyMisplaced("stands in a body, where nothing is put in"))
	refusal.close = true
	x.refused.Store(refusal)
	return refusal
}

// inField refuses a body that names another method.
func (x *exchange) inField() error {
	refusal := otherMethod()
	x.refused.Store(refusal)
	return refusal
}

// bodyEnded passes the request's trailer on, which has come with the last
// byte.
func (x *exchange) bodyEnded() error {
	if i := x.misplaced("", "", x.in.Trailer); i >= 0 {
		refusal := misused(x.Bindings[i], x.whyMisplaced("stands in a trailer"))
		x.refused.Store(refusal)
		return refusal
	}
	for name := range x.trailer { // the announced ones
		x.trailer[name] = x.in.Trailer[name]
	}
	return nil
}

func (x *exchange) decide() *Refusal {
	if x.Decide != nil {
		x.result.Decision = x.Decide(x.in.Context(), x.request)
	}
	d := x.result.Decision
	if d.Verdict == bawn.Allow {
		return nil
	}
	remedy := "ask the human who runs this session to allow it; trying again will not help"
	if x.Remedy != nil {
		remedy = x.Remedy(x.request, d)
	}
	return denied(d, remedy)
}

// borrow gets the values. The guest is told which secret, not why.
func (x *exchange) borrow() *Refusal {
	if len(x.uses) == 0 {
		return nil
	}
	if err := x.lend(x.in.Context(), x.uses); err != nil {
		x.result.Err = err
		return &Refusal{
			Status: http.StatusForbidden, Rule: "secret",
			Reason: fmt.Sprintf("one of the secrets %q could not be had, and the request is not sent without it", names(x.uses)),
			Remedy: "the session's human sees the cause in the log",
		}
	}
	x.told.keep(x.target.Host, x.uses)
	return nil
}

// outbound returns the request as the proxy gets it, still with placeholders.
// An inspected body is sent exactly as it was judged.
func (x *exchange) outbound() *http.Request {
	r := x.in.WithContext(context.WithValue(x.in.Context(), exchangeKey{}, x))
	switch {
	case x.judged != nil: // with a body that may be another than the guest's
		r.Header, r.Body, r.ContentLength = x.judged.Header, x.judged.Body, x.judged.ContentLength
	case x.request.body != nil:
		r.Body = x.request.body
	}
	return r
}

// RoundTrip sends a request. Its hooks are set here so that they run before
// the proxy's, which passes informational responses on.
func (c *connection) RoundTrip(out *http.Request) (*http.Response, error) {
	x := exchangeOf(out.Context())
	if x.signing != nil {
		if err := x.resign(out); err != nil {
			x.result.Err = err
			x.refused.Store(misused(x.signing.binding, "could not be replaced by an access key"))
			return nil, err
		}
	}
	return c.transport.RoundTrip(out.WithContext(httptrace.WithClientTrace(out.Context(), &httptrace.ClientTrace{
		GotConn:        func(info httptrace.GotConnInfo) { x.result.Addr = dialled(info.Conn) },
		Got1xxResponse: x.informed,
	})))
}

// informed redacts an informational response (RFC 9110 section 15.2).
func (x *exchange) informed(_ int, h textproto.MIMEHeader) error {
	x.known().header(http.Header(h))
	return nil
}

// rewrite makes the request that is sent: the decided one, with the values.
func (c *connection) rewrite(p *httputil.ProxyRequest) {
	x := exchangeOf(p.In.Context())
	out := p.Out
	out.URL = &url.URL{
		Scheme: x.request.Scheme, Host: c.authority, Path: p.In.URL.Path, RawPath: p.In.URL.RawPath,
		RawQuery: x.request.Query, ForceQuery: p.In.URL.ForceQuery,
	}
	out.Host = c.authority
	x.trailer = out.Trailer
	for _, u := range x.uses {
		out.Header, out.URL.RawQuery = u.put(out.Header, out.URL.RawQuery)
	}
	x.result.Secrets = names(x.uses)
	if !x.guarded() {
		return
	}
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Del("Sec-Websocket-Extensions") // a packed echo, or a part of one, would not be known again
	if x.signing == nil || len(x.uses) > 1 {   // of a signed request nothing echoes the key, which is not sent
		out.Header.Del("Range")
		out.Header.Del("If-Range")
	}
}

// answered looks at a response before the guest gets any of it.
func (c *connection) answered(res *http.Response) error {
	x := exchangeOf(res.Request.Context())
	x.result.Status = res.StatusCode
	res.Header.Del("Alt-Svc") // there is no other way to this host
	if res.StatusCode == http.StatusSwitchingProtocols {
		return x.spliced(res)
	}
	if x.guarded() {
		if err := redacted(res, x.known); err != nil {
			return err
		}
	}
	x.cookies.set(x.target.Host, res.Header)
	res.Body = &counted{ReadCloser: res.Body, n: &x.back}
	return nil
}

// spliced counts the bytes of a WebSocket.
func (x *exchange) spliced(res *http.Response) error {
	host, ok := res.Body.(io.ReadWriteCloser)
	if !ok || x.request.Upgrade == "" {
		return errors.New("the host switched protocols unasked")
	}
	if !accepts(res.Header, x.in.Header) {
		return errors.New("the host switched protocols without accepting the WebSocket (Sec-WebSocket-Accept)")
	}
	if x.guarded() {
		if res.Header.Get("Sec-Websocket-Extensions") != "" { // none was asked for
			return errPacked
		}
		x.known().header(res.Header)
		host = &tripwire{ReadWriteCloser: host, known: x.known}
	}
	res.Body = &countedBoth{ReadWriteCloser: host, in: &x.back, sent: x.sending}
	return nil
}

// sending counts bytes of the guest's on their way to the host.
func (x *exchange) sending(n int) {
	x.out.Add(int64(n))
	if lent := x.request.Lent(); x.Sent != nil && len(lent) > 0 {
		x.Sent(lent, int64(n))
	}
}

// accepts reports whether an answer is a WebSocket server's to this very request (RFC
// 6455 section 4.2.2). Behind any other 101, which a guest may have got out of a server
// (an endpoint that returns a wanted status), the connection takes undecided requests.
func accepts(answer, request http.Header) bool {
	const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	key := request.Get("Sec-Websocket-Key")
	sum := sha1.Sum([]byte(key + guid))
	return key != "" && answer.Get("Sec-Websocket-Accept") == base64.StdEncoding.EncodeToString(sum[:])
}

// failed answers where the host did not.
func (c *connection) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	refusal := x.refused.Load()
	if refusal == nil {
		refusal = upstreamFailed(c.target.Host, err)
		known := x.known() // if a host's answer is not HTTP, the error quotes it
		refusal.Reason, refusal.cause = known.text(refusal.Reason), known.text(refusal.cause)
	}
	x.refuse(w, refusal)
}

func (x *exchange) refuse(w http.ResponseWriter, refusal *Refusal) {
	x.result.Status = refusal.Status
	if x.result.Err == nil {
		x.result.Err = refusal
	}
	refusal.write(w, x.in.Header)
}

func (x *exchange) done(w http.ResponseWriter) {
	if x.judged != nil && x.judged.Body != nil {
		_ = x.judged.Body.Close() // it may hold a file, also where nothing was sent
	}
	if x.request.body != nil { // the server now reads the rest of the guest's body, to keep the connection
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(restOfBody))
	}
	if refusal := x.refused.Load(); refusal != nil && x.result.Err == nil {
		x.result.Err = refusal
	}
	x.result.Out, x.result.In = x.out.Load(), x.back.Load()
	if x.Done != nil {
		x.Done(x.request, x.result)
	}
}

// A counted body counts the bytes read from it.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// A countedBoth counts both directions.
type countedBoth struct {
	io.ReadWriteCloser
	in   *atomic.Int64
	sent func(bytes int)
}

func (c *countedBoth) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	c.in.Add(int64(n))
	return n, err
}

func (c *countedBoth) Write(p []byte) (int, error) {
	c.sent(len(p))
	return c.ReadWriteCloser.Write(p)
}
