package dockerapi

import (
	"context"
	"slices"
	"sync"
)

// gates orders requests that touch the same container or volume. A key is
// "container ID" or "volume NAME"; the zero value is ready.
type gates struct {
	mu   sync.Mutex
	list map[string]*gate
}

// A gate is entered by many at a time, or by one alone.
type gate struct {
	turn  chan struct{} // held by the one that collects slots
	slots chan struct{}
	users int // guarded by gates.mu; a gate without users is forgotten
}

// gateSlots is how many may share a gate at a time; others wait.
const gateSlots = 16

func (g *gates) get(key string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.list == nil {
		g.list = map[string]*gate{}
	}
	one := g.list[key]
	if one == nil {
		one = &gate{turn: make(chan struct{}, 1), slots: make(chan struct{}, gateSlots)}
		g.list[key] = one
	}
	one.users++
	return one
}

func (g *gates) put(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.list[key]; one != nil {
		if one.users--; one.users == 0 {
			delete(g.list, key)
		}
	}
}

// share enters a gate with others. leave must be called.
func (g *gates) share(ctx context.Context, key string) (leave func(), err error) {
	return g.enter(ctx, key, 1)
}

// alone enters a gate when it is empty. leave must be called.
func (g *gates) alone(ctx context.Context, key string) (leave func(), err error) {
	return g.enter(ctx, key, gateSlots)
}

func (g *gates) enter(ctx context.Context, key string, slots int) (leave func(), err error) {
	one := g.get(key)
	got := 0
	leave = func() {
		for range got {
			<-one.slots
		}
		g.put(key)
	}
	select {
	case one.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	defer func() { <-one.turn }()
	for ; got < slots; got++ {
		select {
		case one.slots <- struct{}{}:
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// allAlone enters several gates. They are taken in the order of their keys, so
// that two callers never wait for each other.
func (g *gates) allAlone(ctx context.Context, keys []string) (leave func(), err error) {
	var left []func()
	leave = func() {
		for _, l := range slices.Backward(left) {
			l()
		}
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		l, err := g.alone(ctx, key)
		if err != nil {
			leave()
			return nil, err
		}
		left = append(left, l)
	}
	return leave, nil
}
