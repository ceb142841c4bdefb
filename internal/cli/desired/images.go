package desired

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// Images are a cluster's policies for images, as far as the user may read them.
type Images struct {
	// Set is nil if the user may not read ImageConfigs. Its methods treat nil as a Set without
	// policies.
	*imagepolicy.Set
	get       sources.Get
	namespace string
	// Unread is the reason why ImageConfigs, or the keys they name, could not be read; nil if all
	// were.
	Unread error
}

// ReadImages reads the ImageConfigs of a cluster and their keys, which are in the namespace of the
// manager.
func ReadImages(ctx context.Context, cl *cluster.Cluster, namespace string) (*Images, error) {
	i := &Images{get: sources.Getter(cl), namespace: namespace}

	list := &corev1alpha1.ImageConfigList{}
	switch err := cl.List(ctx, list); {
	case apierrors.IsForbidden(err):
		i.Unread = err
		return i, nil
	case cluster.Unserved(err):
		return i, nil // the engine has none
	case err != nil:
		return nil, cl.Explain("read ImageConfigs", err)
	}

	read := map[sources.Ref]*sources.Object{}
	for _, at := range imageconfigs.Refs(list.Items, namespace) {
		object, err := i.get(ctx, at)
		if apierrors.IsForbidden(err) {
			// The policy still applies to an image: it counts as one with an unreadable key.
			i.Unread, object, err = errors.Join(i.Unread, err), &sources.Object{Refused: "you may not"}, nil
		}
		if err != nil {
			return nil, cl.Explain("read the keys of ImageConfigs", err)
		}
		read[at] = object
	}

	i.Set = imagepolicy.NewSet(imageconfigs.Policies(list.Items, namespace, read), false, time.Now())
	return i, nil
}

// Decide returns the decision of the policies about an image that is used for a purpose, the
// credentials that one of them names, and the names of credentials that the user may not read.
func (i *Images) Decide(ctx context.Context, ref string, purpose imagepolicy.Purpose) (decision imagepolicy.Decision, keys authn.Keychain, missing []string, err error) {
	decision = i.Set.Decide(ref, purpose)
	if decision.Refusal != nil {
		return decision, nil, nil, RefusedImage(ref, decision.Refusal)
	}
	if decision.PullSecret != "" {
		keys, missing, err = sources.Keychain(ctx, i.get, []sources.Ref{{Kind: sources.KindSecret, Namespace: i.namespace, Name: decision.PullSecret}})
	}
	return decision, keys, missing, err
}

// TrustedImage is an image of a package as the manager would read it.
type TrustedImage struct {
	// Ref is the reference to pull. If a policy verifies the image, it has the verified digest.
	Ref string
	// Keys precede the user's.
	Keys authn.Keychain
	// Warnings name skipped images, and the reasons.
	Warnings []string
}

// Trust resolves and verifies the image of a package as the manager would. keys are the Package's,
// and may be nil.
func (i *Images) Trust(ctx context.Context, registries *content.RegistryFlags, ref string, keys authn.Keychain) (*TrustedImage, error) {
	decision, own, missing, err := i.Decide(ctx, ref, imagepolicy.Package)
	if err != nil {
		return nil, err
	}

	image := &TrustedImage{Ref: decision.Pull, Keys: keys}
	for _, problem := range missing {
		image.Warnings = append(image.Warnings, "the pull secret of an ImageConfig: "+problem)
	}

	// The package's own credentials come first.
	switch {
	case own != nil && keys != nil:
		image.Keys = authn.NewMultiKeychain(keys, own)
	case own != nil:
		image.Keys = own
	}
	if i.Set == nil && i.Unread != nil {
		image.Warnings = append(image.Warnings, "you may not read the ImageConfigs of the cluster: the image is read from its original reference, and its signature is not verified")
	}
	if decision.Verification == nil {
		return image, nil
	}

	puller, err := registries.Puller("", decision.Pull)
	if err != nil {
		return nil, err
	}

	puller = puller.With(registry.Access{Keychain: image.Keys})
	digest, err := puller.Resolve(ctx, decision.Pull)
	if err != nil {
		return nil, content.Advise(err)
	}
	// The verified digest is pulled, so that the tag cannot move in the meantime.
	image.Ref = sources.ByDigest(decision.Pull, digest)
	_, err = puller.Verify(ctx, image.Ref, digest, decision.Verification, "")
	refusal := imagepolicy.RefusalOf(err)
	switch {
	case err == nil:
	case refusal == nil:
		return nil, content.Advise(err)
	// A key that the user may not read does not make the image untrusted for the manager.
	case i.Unread != nil && refusal.Reason == imagepolicy.ReasonTrustRootInvalid:
		image.Warnings = append(image.Warnings, fmt.Sprintf("the signature of the image is not verified: you may not read the keys of the ImageConfig %s", decision.Policy))
	case decision.Verification.Mode == imagepolicy.Warn:
		image.Warnings = append(image.Warnings, RefusedImage(ref, refusal).Error())
	default:
		return nil, fmt.Errorf("%w (ImageConfig %s)", RefusedImage(ref, refusal), decision.Policy)
	}

	return image, nil
}

// RefusedImage is the error for an untrusted image.
func RefusedImage(ref string, refusal *imagepolicy.Refusal) error {
	return fmt.Errorf("%s: %w", refusal.Reason, refusal.About(ref))
}
