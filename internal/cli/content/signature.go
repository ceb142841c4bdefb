package content

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Attach signs the image that a reference leads to now, and puts the signature beside it. It returns the digests of both.
func (r *RegistryFlags) Attach(ctx context.Context, ref string, sign func(digest string) ([]byte, error)) (image, signature v1.Hash, err error) {
	parsed, options, err := r.Remote(ctx, ref)
	if err != nil {
		return image, signature, err
	}
	signed, err := remote.Head(parsed, options...)
	if err != nil {
		return image, signature, requestError("sign", parsed, err)
	}
	bundle, err := sign(signed.Digest.String())
	if err != nil {
		return image, signature, err
	}
	attachment, err := imagepolicy.NewAttachment(bundle, *signed)
	if err != nil {
		return image, signature, err
	}
	repository := parsed.Context()
	for _, blob := range attachment.Blobs {
		if err := remote.WriteLayer(repository, blob, options...); err != nil {
			return image, signature, requestError("push the signature of", parsed, err)
		}
	}
	if err := remote.Put(repository.Digest(attachment.Digest.String()), attachment, options...); err != nil {
		return image, signature, requestError("push the signature of", parsed, err)
	}
	return signed.Digest, attachment.Digest, nil
}

// Signatures returns the digests of the bundles that are read to verify an image, and how many more there are at least.
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
