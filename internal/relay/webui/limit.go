package webui

import (
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxPeers is how many addresses are counted each by itself; the others share
// one bucket.
const maxPeers = 4096

// sweepEvery is how often those are forgotten that have been quiet.
const sweepEvery = time.Second

// A limiter counts requests, per address and in all.
type limiter struct {
	now   func() time.Time
	each  rate.Limit
	burst int

	mu    sync.Mutex
	all   *rate.Limiter
	rest  *rate.Limiter
	peers map[netip.Prefix]*rate.Limiter
	swept time.Time
}

// newLimiter allows each address "each" requests a second and burst at once.
func newLimiter(each float64, burst int, all float64, allBurst int, now func() time.Time) *limiter {
	return &limiter{now: now, each: rate.Limit(each), burst: burst, all: rate.NewLimiter(rate.Limit(all), allBurst),
		rest: rate.NewLimiter(rate.Limit(each), burst), peers: map[netip.Prefix]*rate.Limiter{}}
}

// allow counts one request. One that its own address may not make takes
// nothing from the others.
func (l *limiter) allow(peer netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.bucket(peer, now).AllowN(now, 1) && l.all.AllowN(now, 1)
}

func (l *limiter) bucket(peer netip.Addr, now time.Time) *rate.Limiter {
	key := network(peer)
	if b, ok := l.peers[key]; ok {
		return b
	}
	if len(l.peers) >= maxPeers && now.Sub(l.swept) >= sweepEvery {
		l.swept = now
		maps.DeleteFunc(l.peers, func(_ netip.Prefix, b *rate.Limiter) bool { return b.TokensAt(now) >= float64(l.burst) })
	}
	if len(l.peers) >= maxPeers {
		return l.rest
	}
	b := rate.NewLimiter(l.each, l.burst)
	l.peers[key] = b
	return b
}

// network returns what one peer can choose its address from: a /64 of IPv6.
func network(peer netip.Addr) netip.Prefix {
	peer = peer.Unmap().WithZone("")
	bits := peer.BitLen()
	if peer.Is6() {
		bits = 64
	}
	p, _ := peer.Prefix(bits) // no address: the zero prefix, counted as one peer
	return p
}

// peerOf returns the address a request comes from, the zero Addr if unknown.
func peerOf(r *http.Request) netip.Addr {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr)
	return ap.Addr()
}
