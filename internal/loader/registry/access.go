package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Access says how one image is pulled.
type Access struct {
	// Keychain has credentials that come before those of the Puller; nil for none.
	Keychain authn.Keychain
	// Offline asks no registry: what the cache does not hold is an error.
	Offline bool
}

// With returns a Puller with that access, which shares everything else with p:
// cache, limits, and downloads that are going on with the same credentials.
func (p *Puller) With(access Access) *Puller {
	own := *p
	own.access = access
	return &own
}

// keychain returns the credentials in the order in which they count.
func (p *Puller) keychain() authn.Keychain {
	if p.access.Keychain == nil {
		return p.opts.Keychain
	}
	return authn.NewMultiKeychain(p.access.Keychain, p.opts.Keychain)
}

// key tells apart pulls that must not share a download: what one is allowed to
// read, another may not be.
func (a Access) key(ctx context.Context, repo name.Repository) (string, error) {
	if a.Offline {
		return " offline", nil
	}
	if a.Keychain == nil {
		return "", nil
	}
	auth, err := authn.Resolve(ctx, a.Keychain, repo)
	if err != nil || auth == authn.Anonymous {
		return "", nil // an error is met again, and told, where the credentials are used
	}
	config, err := authn.Authorization(ctx, auth)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return " " + hex.EncodeToString(sum[:]), nil
}
