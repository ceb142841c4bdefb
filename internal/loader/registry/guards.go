package registry

import (
	"crypto/sha256"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// guardKey is what two pulls must have in common to use the same connections one
// after the other. Proxy, insecure hosts and timeouts belong to the Puller, and
// credentials to no connection.
type guardKey struct {
	// host is the registry with its port: what a connection may lead to depends on it.
	host string
	// bundle is the digest of the certificate authorities as they are on disk now.
	bundle [sha256.Size]byte
}

// guards keeps the guards of pulls that have ended, with their connections, for a
// short while: a TLS handshake costs more than all else of a small pull. One pull
// has a guard for itself.
type guards struct {
	mu   sync.Mutex
	idle []*guard
}

// take returns the guard of an earlier pull, the one that was used last, or nil.
func (g *guards) take(key guardKey) *guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := len(g.idle) - 1; i >= 0; i-- {
		if one := g.idle[i]; one.key == key {
			g.remove(i)
			one.dialer.inherit()
			return one
		}
	}
	return nil
}

// put keeps a guard for later pulls. One that is old is not kept, so that a
// registry that has moved is found.
func (g *guards) put(one *guard) {
	if time.Since(one.made) > limits.RegistryConnectionAge {
		one.close()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.idle) >= limits.RegistryConnections {
		g.idle[0].close()
		g.remove(0)
	}
	g.idle = append(g.idle, one)
	one.expiry = time.AfterFunc(limits.RegistryIdle, func() { g.expire(one) })
}

// expire drops a guard that nobody has taken.
func (g *guards) expire(one *guard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.idle {
		if g.idle[i] == one {
			g.remove(i)
			one.close()
			return
		}
	}
}

func (g *guards) remove(i int) {
	g.idle[i].expiry.Stop()
	g.idle = append(g.idle[:i], g.idle[i+1:]...)
}
