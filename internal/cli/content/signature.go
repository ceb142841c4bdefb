package content

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Signatures returns the digests of the bundles that verify an image, and a lower bound for the
// number of further ones.
func (r *RegistryFlags) Signatures(ctx context.Context, ref, digest string) (bundles []v1.Hash, unread int, err error) {
	puller, err := r.Puller("", ref)
	if err != nil {
		return nil, 0, err
	}
	bundles, unread, err = puller.Signatures(ctx, ref, digest)
	return bundles, unread, Advise(err)
}

// reference parses the reference of an image, by tag or by digest.
func (r *RegistryFlags) reference(text string) (name.Reference, error) {
	insecure, err := r.hosts()
	if err != nil {
		return nil, err
	}
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("invalid image %q: write it as host/path:tag or host/path@sha256:…", text)
	}
	if reg := ref.Context().RegistryStr(); r.trusts(reg) || insecure[reg] {
		ref, err = name.ParseReference(text, name.Insecure)
	}

	return ref, err
}
