package fetch

import (
	"context"
	"errors"
	"strings"

	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// image resolves the reference according to the policies, verifies the digest, and pulls it unless
// it is known. It does not verify an image again that the same keys and roots have verified.
func (f *Fetcher) image(ctx context.Context, s Source, known string) (*Result, error) {
	if f.opts.Puller == nil {
		return nil, permanent("", "image: images cannot be pulled here")
	}

	spec := s.Spec.Image
	folder, err := cleanSubPath("image.subPath", spec.SubPath)
	if err != nil {
		return nil, err
	}
	if refusal := s.Image.Refusal; refusal != nil {
		return nil, refusal.About(spec.Ref)
	}

	access := registry.Access{Namespace: s.Namespace, Keychain: s.Keychain, Own: s.OwnOnly, Selection: &archive.Selection{
		Keep:    func(p string) bool { return p == loader.ImagesLock || keeps(p, folder) },
		Entries: limits.RepositoryEntries, Files: limits.RepositoryFiles, Bytes: f.opts.Bytes,
	}}
	ref, tag := spec.Ref, ""
	if s.Image.Rewritten {
		// An administrator names this registry for all namespaces. It can be at a private address,
		// and no flag redirects it.
		ref, access.Exact = s.Image.Pull, true
	}

	puller := f.opts.Puller.With(access)
	if spec.TagSelection != nil {
		tags, err := puller.Tags(ctx, ref)
		if err != nil {
			return nil, pullError(err)
		}
		if tag, err = versions.Highest(*spec.TagSelection, "spec.source.image.tagSelection", tags); err != nil {
			return nil, permanent("", "image.tagSelection: %v", err)
		}
		ref = loader.RepositoryOf(ref) + ":" + tag
	}

	digest, err := puller.Resolve(ctx, ref)
	if err != nil {
		return nil, pullError(err)
	}

	repository, knownDigest := loader.RepositoryOf(ref), Unverified(known)
	outcome, validator, err := verify(ctx, puller, &s, repository+"@"+digest, digest, known)
	if err != nil {
		return nil, err
	}
	if digest == knownDigest {
		return &Result{NotModified: true, Validator: validator, Verification: outcome}, nil
	}

	var image *registry.Image
	err = s.inRoom(func(room int64) (err error) {
		access.Room = room
		image, err = f.opts.Puller.With(access).Pull(ctx, repository+"@"+digest)
		return err
	})
	if err != nil {
		return nil, pullError(err)
	}

	relocated, err := Relocate(ctx, puller, repository, loader.RepositoryOf(spec.Ref), digest, image.Files)
	if err != nil {
		return nil, err
	}

	files, err := choose(relocated, "image.subPath", folder)
	if err != nil {
		return nil, err
	}

	revision := digest
	if tag != "" {
		revision = tag + "@" + digest
	}

	return &Result{Files: files, Revision: revision, Validator: validator, Verification: outcome}, nil
}

// verifiedMark separates the digest of an image from the identity of the keys and roots that
// verified it.
const verifiedMark = " verified by "

// Unverified returns a validator for the same content without the mark of verification, which is the
// digest of an image.
func Unverified(validator string) string {
	digest, _, _ := strings.Cut(validator, verifiedMark)
	return digest
}

// VerifiedBy returns the identity of the keys and roots that verified the image of a validator;
// empty if it was not verified.
func VerifiedBy(validator string) string {
	_, key, _ := strings.Cut(validator, verifiedMark)
	return key
}

// verify verifies an image, unless it is already known to be verified, and returns its validator.
// The error is an *imagepolicy.Refusal if the image must not be used.
func verify(ctx context.Context, puller *registry.Puller, s *Source, ref, digest, known string) (outcome *imagepolicy.Outcome, validator string, err error) {
	if s.Image.Verification == nil {
		return nil, digest, nil
	}

	key := s.Image.VerificationKey
	if validator = digest + verifiedMark + key; validator == known {
		return nil, validator, nil
	}

	verified, err := puller.Verify(ctx, ref, digest, s.Image.Verification, key)
	if outcome, err = s.Image.Outcome(s.Spec.Image.Ref, verified, err); err != nil {
		return nil, "", err
	}
	if outcome.Refusal != nil {
		validator = digest // each fetch checks it again
	}

	return outcome, validator, nil
}

// pullError turns an error of package registry into an error of this package.
func pullError(err error) error {
	var failed *registry.PullError
	if !errors.As(err, &failed) {
		return err
	}
	return &Error{Details: err.Error(), Permanent: !failed.Temporary, Err: failed}
}
