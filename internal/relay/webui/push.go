package webui

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/bawn-dev/bawn/internal/egress/dial"
	"github.com/bawn-dev/bawn/internal/hostname"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// A Subscription is where a browser wants its notices (Push API, RFC 8030).
type Subscription struct {
	Endpoint string // of the browser's push service
	P256dh   string // the browser's key, base64url
	Auth     string // its secret, base64url
}

const (
	maxEndpoint = 1024
	pushTime    = 15 * time.Second
	pushTTL     = 600 // seconds; then nobody waits any more
)

// checkSubscription refuses what would make the relay call something else than
// a push service on the Internet. Where the name leads is judged when it is
// dialled.
func checkSubscription(sub Subscription) error {
	u, err := url.Parse(sub.Endpoint)
	if err != nil || len(sub.Endpoint) > maxEndpoint || u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return errors.New("the endpoint is no https URL of a push service")
	}
	name, _, err := hostname.NormalASCII(u.Hostname())
	if err != nil || isAddress(name) || !strings.Contains(name, ".") || u.Port() != "" && u.Port() != "443" {
		return fmt.Errorf("endpoint's host %q is no name of a push service at port 443", clip(u.Host, 200))
	}
	key, err := keyBytes(sub.P256dh)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(key)
	}
	if err != nil {
		return errors.New("p256dh is no public key on P-256")
	}
	if auth, err := keyBytes(sub.Auth); err != nil || len(auth) != 16 {
		return errors.New("auth has not 16 bytes")
	}
	return nil
}

func keyBytes(text string) ([]byte, error) {
	if len(text) > 200 {
		return nil, errors.New("too long")
	}
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// A pusher sends notices to browsers.
type pusher struct {
	s      *Server
	key    vapid
	client *http.Client
}

// vapid is the key by which push services know this relay (RFC 8292).
type vapid struct{ Public, Private string }

func newPusher(ctx context.Context, s *Server) (*pusher, error) {
	connectTo := s.o.Dial
	if connectTo == nil {
		connectTo = dialPublic
	}
	p := &pusher{s: s, client: &http.Client{
		Timeout:       pushTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: connectTo, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader, MaxIdleConns: 10,
			IdleConnTimeout: time.Minute, TLSHandshakeTimeout: pushTime,
		},
	}}
	kept, err := s.o.Items.Items(ctx, keyItems)
	if err != nil {
		return nil, fmt.Errorf("read the key for push: %w", err)
	}
	if text, there := kept["vapid"]; there {
		if err := json.Unmarshal(text, &p.key); err != nil || p.key.Private == "" {
			return nil, fmt.Errorf("the key for push in the store can't be read (%v)", err)
		}
		return p, nil
	}
	if p.key.Private, p.key.Public, err = webpush.GenerateVAPIDKeys(); err != nil {
		return nil, fmt.Errorf("make a key for push: %w", err)
	}
	text, err := json.Marshal(p.key)
	if err != nil {
		return nil, err
	}
	return p, s.o.Items.KeepItem(ctx, keyItems, "vapid", text)
}

// dialPublic connects to public addresses only: an endpoint is chosen by the
// browser, and must not lead into the user's own network.
func dialPublic(ctx context.Context, _, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	conn, _, err := (&dial.Dialer{Timeout: pushTime}).Dial(ctx, host, uint16(port))
	return conn, err
}

// send sends a notice to every device that wants them.
func (p *pusher) send(ctx context.Context, m message) {
	text, err := json.Marshal(map[string]string{"title": "Bawn", "body": m.short, "url": "/#approvals", "tag": m.tag})
	if err != nil {
		p.s.o.Log.Error("push", "error", err)
		return
	}
	for _, d := range p.s.devices.all() {
		if d.Push == nil {
			continue
		}
		if err := p.one(ctx, d, text, m.tag); err != nil {
			p.s.o.Log.Warn("a notice could not be pushed", "device", d.Name, "error", err)
		}
	}
}

// one sends to one device. The error names no endpoint: with it anybody could
// send there.
func (p *pusher) one(ctx context.Context, d Device, text []byte, tag string) error {
	topic := sha256.Sum256([]byte(tag)) // RFC 8030, 5.4: at most 32 characters of base64url
	answer, err := webpush.SendNotificationWithContext(ctx, text,
		&webpush.Subscription{Endpoint: d.Push.Endpoint, Keys: webpush.Keys{P256dh: d.Push.P256dh, Auth: d.Push.Auth}},
		&webpush.Options{
			HTTPClient: p.client, Subscriber: "https://github.com/bawn-dev/bawn", TTL: pushTTL, Urgency: webpush.UrgencyHigh,
			Topic:          base64.RawURLEncoding.EncodeToString(topic[:18]),
			VAPIDPublicKey: p.key.Public, VAPIDPrivateKey: p.key.Private, RecordSize: 2048,
		})
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 4096) // so that the connection can be used again
	switch {
	case answer.StatusCode == http.StatusGone || answer.StatusCode == http.StatusNotFound:
		_, err := p.s.devices.change(ctx, d.ID, func(d *Device) { d.Push = nil })
		return errors.Join(errors.New("the browser has ended its subscription"), err)
	case answer.StatusCode >= 300:
		return fmt.Errorf("the push service says %d", answer.StatusCode)
	}
	return nil
}

// PushKey returns what browsers subscribe with.
func (s *Server) PushKey() string { return s.pusher.key.Public }

// Subscribe sends notices to a device from now on.
func (s *Server) Subscribe(ctx context.Context, device string, m *bawnv1.DeviceServiceSubscribeRequest) error {
	sub := Subscription{Endpoint: m.GetEndpoint(), P256dh: m.GetP256Dh(), Auth: m.GetAuth()}
	if err := checkSubscription(sub); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	_, err := s.devices.change(ctx, device, func(d *Device) { d.Push = &sub })
	return err
}

// Unsubscribe ends that.
func (s *Server) Unsubscribe(ctx context.Context, device string) error {
	_, err := s.devices.change(ctx, device, func(d *Device) { d.Push = nil })
	return err
}
