package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

const verifiedAge = 24 * time.Hour // of a kept verification

// These are media types of referrers of an image, and of the content at the tag of its signatures.
const (
	bundleTypes       = "application/vnd.dev.sigstore.bundle"
	simpleSigningType = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// Verify reads the signatures of the image with a digest, which ref names or resolved to, and
// returns the good one. The outcome is kept by the digest and key, which identifies the
// Verification; concurrent callers share it. The error is an *imagepolicy.Refusal, or wraps the
// cause of ctx.
func (p *Puller) Verify(ctx context.Context, ref, digest string, verification *imagepolicy.Verification, key string) (*imagepolicy.Verified, error) {
	kept := digest + " " + key
	if known, found := p.verifications.Get(kept); found {
		verified := known.(imagepolicy.Verified)
		return &verified, nil
	}

	parsed, err := p.parse(ref)
	if err != nil {
		return nil, imagepolicy.Unreachable(err)
	}

	access, err := p.access.key(ctx, parsed.Context())
	if err != nil {
		return nil, p.unverified(ctx, ref, err)
	}

	verified, err := p.checks.do(ctx, kept+" "+parsed.Context().Name()+access, func(ctx context.Context) (imagepolicy.Verified, error) {
		verified, err := p.verify(ctx, ref, parsed, digest, verification)
		if err != nil {
			return imagepolicy.Verified{}, err
		}
		p.verifications.Add(kept, *verified, verifiedAge)
		return *verified, nil
	})
	if err != nil {
		return nil, p.unverified(ctx, ref, err)
	}

	return &verified, nil
}

// unverified returns the error of an image without a known good signature.
func (p *Puller) unverified(ctx context.Context, ref string, err error) error {
	var failed *PullError
	if imagepolicy.RefusalOf(err) != nil {
		return err
	}
	if err = p.classify(ctx, ref, err, nil); errors.As(err, &failed) {
		return imagepolicy.Unreachable(err)
	}
	return err
}

// verify reads and checks signatures until one is good. A good one suffices even if others could
// not be read.
func (p *Puller) verify(ctx context.Context, ref string, parsed name.Reference, digest string, verification *imagepolicy.Verification) (*imagepolicy.Verified, error) {
	hash, err := v1.NewHash(digest)
	check, refusal := verification.Check(digest, time.Now())
	if err != nil || refusal != nil {
		return nil, &imagepolicy.Refusal{Reason: imagepolicy.ReasonSignatureInvalid, Message: "its digest cannot be read"}
	}

	unread, err := p.signatures(ctx, ref, parsed, hash, check)
	verified, refusal := check.Result(unread)
	switch {
	case verified != nil:
		return verified, nil
	case err != nil:
		return nil, err
	}

	return nil, refusal
}

// Signatures returns the digests of the bundles that Verify would read for the image with a digest,
// and the minimum number of unread ones. It leaves out signatures of cosign 2, which are at a tag.
func (p *Puller) Signatures(ctx context.Context, ref, digest string) (bundles []v1.Hash, unread int, err error) {
	parsed, err := p.parse(ref)
	if err != nil {
		return nil, 0, err
	}

	hash, err := v1.NewHash(digest)
	if err != nil {
		return nil, 0, &PullError{Ref: safeRef(ref), Reason: ReasonInvalidReference, Details: "the digest cannot be read"}
	}

	err = p.withSession(ctx, ref, parsed.Context(), func(ctx context.Context, s *session) error {
		found, err := s.referrers(ctx, hash)
		if err == nil {
			bundles, unread = found.bundles, found.unread
		}
		return err
	})
	return bundles, unread, err
}

// signatures offers a check the signatures in the registry, in both forms, until one is good. It
// returns the number of unread ones.
func (p *Puller) signatures(ctx context.Context, ref string, parsed name.Reference, digest v1.Hash, check *imagepolicy.Check) (unread int, err error) {
	err = p.withSession(ctx, ref, parsed.Context(), func(ctx context.Context, s *session) error {
		good, more, err := s.bundles(ctx, digest, check)
		unread += more
		if good {
			return nil
		}
		// A registry that refuses to list referrers can still have signatures of cosign 2.
		var response *transport.Error
		if err != nil && !errors.As(err, &response) {
			return err
		}
		good, more, simpleErr := s.simpleSignatures(ctx, digest, check)
		unread += more
		switch {
		case good:
			return nil
		case err != nil:
			return err
		}
		return simpleErr
	})

	return unread, err
}

// bundles offers the Sigstore bundles that refer to the image.
func (s *session) bundles(ctx context.Context, digest v1.Hash, check *imagepolicy.Check) (good bool, unread int, err error) {
	found, err := s.referrers(ctx, digest)
	if err != nil {
		return false, 0, err
	}

	for range found.attestations {
		check.Attestation()
	}

	for _, bundle := range found.bundles {
		good, err := s.bundle(ctx, bundle, check)
		if err = unreadable(err, check); good || err != nil {
			return good, found.unread, err
		}
	}

	return false, found.unread, nil
}

// bundle offers the first bundle of an artifact.
func (s *session) bundle(ctx context.Context, digest v1.Hash, check *imagepolicy.Check) (bool, error) {
	manifest, err := s.storedManifest(ctx, digest)
	if err != nil {
		return false, err
	}
	for _, layer := range manifest.Layers {
		if !strings.HasPrefix(string(layer.MediaType), bundleTypes) {
			continue
		}
		data, err := s.signature(ctx, layer, check)
		return err == nil && data != nil && check.Bundle(data), err
	}
	return false, nil
}

// simpleSignatures offers the signatures of cosign 2.
func (s *session) simpleSignatures(ctx context.Context, digest v1.Hash, check *imagepolicy.Check) (good bool, unread int, err error) {
	data, err := s.tagged(ctx, digest.Algorithm+"-"+digest.Hex+".sig")
	if data == nil || err != nil {
		return false, 0, err
	}

	manifest, err := parseContent(data)
	if err != nil {
		return false, 0, unreadable(err, check)
	}

	read := 0
	for _, layer := range manifest.Layers {
		switch {
		case string(layer.MediaType) != simpleSigningType:
			continue
		case read == limits.Signatures:
			unread++
			continue
		}
		read++
		payload, err := s.signature(ctx, layer, check)
		if err = unreadable(err, check); err != nil {
			return false, unread, err
		}
		if payload != nil && check.Simple(payload, layer.Annotations) {
			return true, unread, nil
		}
	}

	return false, unread, nil
}

// unreadable turns an error with a single signature into a failure of this signature, if the
// registry has answered.
func unreadable(err error, check *imagepolicy.Check) error {
	var own *failure
	var response *transport.Error
	switch {
	case errors.As(err, &own) && (own.reason == ReasonInvalidImage || own.reason == ReasonLimit || own.reason == ReasonDigestMismatch):
		check.Unreadable(own.details)
		return nil
	case errors.As(err, &response) && response.StatusCode == http.StatusNotFound:
		check.Unreadable("the registry lists it and has it not")
		return nil
	}
	return err
}

// signature downloads the content of a signature. It returns nil if the content is too large.
func (s *session) signature(ctx context.Context, layer v1.Descriptor, check *imagepolicy.Check) ([]byte, error) {
	if layer.Size > limits.SignatureBytes || layer.Size < 0 {
		check.TooLarge(layer.Size)
		return nil, nil
	}
	f, err := s.store.get(layer.Digest, func(w io.Writer) error { return s.blob(ctx, layer, w) })
	if err != nil {
		return nil, err
	}
	return readAll(f)
}

// tagged returns the manifest at a tag, or nil if the tag does not exist.
func (s *session) tagged(ctx context.Context, tag string) ([]byte, error) {
	data, err := s.manifest(ctx, tag)
	var response *transport.Error
	if errors.As(err, &response) && response.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	return data, err
}

// referrers has the manifests that refer to an image. It keeps only the relevant part of their list.
type referrers struct {
	// bundles might be signatures; at most limits.Signatures.
	bundles []v1.Hash
	// attestations is the number of bundles that declare themselves as attestations.
	attestations int
	// unread is the minimum number of further bundles.
	unread int
	// listed is the number of entries that were examined.
	listed int
}

// referrer has the required fields of a descriptor.
type referrer struct {
	Digest       v1.Hash `json:"digest"`
	ArtifactType string  `json:"artifactType"`
	Annotations  struct {
		Predicate string `json:"dev.sigstore.bundle.predicateType"` // imagepolicy.PredicateAnnotation
	} `json:"annotations"`
}

// add adds the entries of a page.
func (r *referrers) add(data []byte) error {
	const what = "the list of referrers"
	var page struct {
		Manifests []referrer `json:"manifests"`
	}
	if err := decode(what, data, &page); err != nil {
		return err
	}

	r.listed += len(page.Manifests)
	for _, d := range page.Manifests {
		// Some registries report the type of the configuration instead of the bundle's.
		mayBeBundle := d.ArtifactType == "" || d.ArtifactType == string(imagepolicy.EmptyConfig) || strings.HasPrefix(d.ArtifactType, bundleTypes)
		switch predicate := d.Annotations.Predicate; {
		case d.Digest == v1.Hash{}:
			return undecodable(what)
		case !mayBeBundle:
		case predicate != "" && predicate != imagepolicy.PredicateType:
			r.attestations++
		case len(r.bundles) == limits.Signatures:
			r.unread++
		default:
			r.bundles = append(r.bundles, d.Digest)
		}
	}

	return nil
}

// referrers lists the referrers of an image: with the API of the distribution specification 1.1, or
// at the tag that registries without it use.
func (s *session) referrers(ctx context.Context, digest v1.Hash) (*referrers, error) {
	found := &referrers{}
	next := fmt.Sprintf("/v2/%s/referrers/%s?artifactType=%s", s.repo.RepositoryStr(), digest, url.QueryEscape(imagepolicy.BundleMediaType))
	for range limits.ReferrerPages {
		before := found.listed
		served, following, err := s.referrersPage(ctx, next, found)
		var response *transport.Error
		switch {
		case errors.As(err, &response) && before == 0 && slices.Contains(withoutReferrers, response.StatusCode), err == nil && !served:
			return s.referrersOfTag(ctx, digest)
		case err != nil:
			return nil, err
		case following == "" || following == next || found.listed == before:
			return found, nil
		case found.listed >= limits.RegistryEntries:
			found.unread++ // the further pages
			return found, nil
		}
		next = following
	}

	found.unread++ // the further pages
	return found, nil
}

// withoutReferrers are the statuses of registries that do not serve referrers.
var withoutReferrers = []int{http.StatusNotFound, http.StatusBadRequest, http.StatusNotAcceptable, http.StatusMethodNotAllowed}

// referrersPage adds a page to found. It reports whether the answer is a list of referrers.
func (s *session) referrersPage(ctx context.Context, pathAndQuery string, found *referrers) (served bool, next string, err error) {
	resp, err := s.do(withBodyLimit(ctx, limits.ImageManifestBytes), http.MethodGet, pathAndQuery, string(types.OCIImageIndex))
	if err != nil {
		return false, "", err
	}

	defer func() { _ = resp.Body.Close() }()
	if mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); mediaType != string(types.OCIImageIndex) {
		return false, "", nil
	}

	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, "", err
	}
	if err := found.add(data); err != nil {
		return false, "", err
	}

	next, err = nextPage(resp)
	return true, next, err
}

// referrersOfTag returns the list at the fallback tag of the distribution specification, which
// clients write to registries without the API.
func (s *session) referrersOfTag(ctx context.Context, digest v1.Hash) (*referrers, error) {
	found := &referrers{}
	data, err := s.tagged(ctx, digest.Algorithm+"-"+digest.Hex)
	if err == nil && data != nil {
		err = found.add(data)
	}
	return found, err
}
