package registry

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

// guardKey is what two pulls have in common that use the same connections. A
// connection carries no credentials.
type guardKey struct {
	// host is the registry with its port.
	host string
	// bundle is the digest of the certificate authorities on disk.
	bundle [sha256.Size]byte
}

// guards keeps idle guards with their connections for a short time, since a TLS
// handshake costs more than the rest of a small pull.
type guards struct {
	mu   sync.Mutex
	idle []*guard
}

// take returns the idle guard that was used last, or nil.
func (g *guards) take(key guardKey) *guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range slices.Backward(g.idle) {
		if one.key == key {
			g.remove(one)
			one.dialer.inherit()
			return one
		}
	}
	return nil
}

// put keeps a guard for later pulls, unless it is so old that the registry may
// have moved.
func (g *guards) put(one *guard) {
	if time.Since(one.made) > limits.RegistryConnectionAge {
		one.close()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.idle) >= limits.RegistryConnections {
		g.idle[0].close()
		g.remove(g.idle[0])
	}
	g.idle = append(g.idle, one)
	one.expiry = time.AfterFunc(limits.RegistryIdle, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.remove(one) {
			one.close()
		}
	})
}

// remove reports whether a guard was idle. g.mu is held.
func (g *guards) remove(one *guard) bool {
	i := slices.Index(g.idle, one)
	if i < 0 {
		return false
	}
	one.expiry.Stop()
	g.idle = slices.Delete(g.idle, i, i+1)
	return true
}
