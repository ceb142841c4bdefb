package imageconfigs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// Refs returns the Secrets and ConfigMaps with keys and trusted roots, sorted. It leaves out pull
// secrets, because each pull reads them.
func Refs(configs []corev1alpha1.ImageConfig, namespace string) []sources.Ref {
	var refs []sources.Ref
	for i := range configs {
		for _, a := range authorities(&configs[i]) {
			if ref, _, named := keyOf(a, namespace); named {
				refs = append(refs, ref)
			}
		}
	}
	return sources.Union(refs, nil)
}

func authorities(config *corev1alpha1.ImageConfig) []corev1alpha1.ImageAuthority {
	if config.Spec.Verification == nil {
		return nil
	}
	return config.Spec.Verification.Authorities
}

// keyOf returns the place of an authority's key or trusted root. named is false if the ImageConfig
// itself contains it.
func keyOf(a corev1alpha1.ImageAuthority, namespace string) (ref sources.Ref, key string, named bool) {
	in := func(kind string, at *corev1alpha1.ImageKeyRef) (sources.Ref, string, bool) {
		return sources.Ref{Kind: kind, Namespace: namespace, Name: at.Name}, at.Key, true
	}
	switch {
	case a.Keyless != nil:
		return in(sources.KindConfigMap, &a.Keyless.TrustedRootRef)
	case a.Key != nil && a.Key.SecretRef != nil:
		return in(sources.KindSecret, a.Key.SecretRef)
	case a.Key != nil && a.Key.ConfigMapRef != nil:
		return in(sources.KindConfigMap, a.Key.ConfigMapRef)
	}
	return sources.Ref{}, "", false
}

// Policies returns the policies of ImageConfigs. objects has the objects that Refs names, or nil
// for a missing one.
func Policies(configs []corev1alpha1.ImageConfig, namespace string, objects map[sources.Ref]*sources.Object) []imagepolicy.Policy {
	policies := make([]imagepolicy.Policy, 0, len(configs))
	for i := range configs {
		spec := &configs[i].Spec
		p := imagepolicy.Policy{Name: configs[i].Name}
		for _, match := range spec.MatchImages {
			p.Prefixes = append(p.Prefixes, match.Prefix)
		}
		if spec.Rewrite != nil {
			p.Rewrite = spec.Rewrite.Prefix
		}
		if spec.PullSecretRef != nil {
			p.PullSecret = spec.PullSecretRef.Name
		}
		if v := spec.Verification; v != nil {
			p.Verification = &imagepolicy.Verification{
				Mode: imagepolicy.Mode(cmp.Or(v.Mode, corev1alpha1.ImageVerificationEnforce)), Purposes: purposesOf(v.Images),
			}
			for _, a := range v.Authorities {
				p.Verification.Authorities = append(p.Verification.Authorities, authorityOf(a, namespace, objects))
			}
		}
		policies = append(policies, p)
	}

	slices.SortFunc(policies, func(a, b imagepolicy.Policy) int { return cmp.Compare(a.Name, b.Name) })
	return policies
}

// purposesOf returns the purposes that images are verified for. An ImageConfig that is older than
// the field gets the defaults.
func purposesOf(images []corev1alpha1.VerifiedImages) []imagepolicy.Purpose {
	if len(images) == 0 {
		return []imagepolicy.Purpose{imagepolicy.Package, imagepolicy.Repository}
	}
	purposes := make([]imagepolicy.Purpose, len(images))
	for i, use := range images {
		purposes[i] = imagepolicy.Purpose(use)
	}
	slices.Sort(purposes)
	return purposes
}

func authorityOf(a corev1alpha1.ImageAuthority, namespace string, objects map[sources.Ref]*sources.Object) imagepolicy.Authority {
	var text []byte
	if ref, key, named := keyOf(a, namespace); named {
		object := objects[ref]
		found := false
		switch {
		case object == nil:
			return imagepolicy.Unusable(a.Name, fmt.Sprintf("there is no %s", ref))
		case object.Refused != "":
			return imagepolicy.Unusable(a.Name, fmt.Sprintf("%s is not read: %s", ref, object.Refused))
		}
		if text, found = object.Data[key]; !found {
			return imagepolicy.Unusable(a.Name, fmt.Sprintf("%s has no key %s", ref, key))
		}
	}

	switch {
	case a.Keyless != nil:
		identities := make([]imagepolicy.Identity, len(a.Keyless.Identities))
		for i, who := range a.Keyless.Identities {
			identities[i] = imagepolicy.Identity(who)
		}
		return imagepolicy.Keyless(a.Name, identities, text, a.Keyless.TransparencyLog == corev1alpha1.TransparencyLogIgnore)
	case a.Key != nil:
		if a.Key.PEM != "" {
			text = []byte(a.Key.PEM)
		}
		return imagepolicy.Key(a.Name, text, timeOf(a.Key.NotBefore), timeOf(a.Key.NotAfter))
	}

	return imagepolicy.Unusable(a.Name, "it has neither key nor keyless")
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// NotVerified returns the state of an owner whose image is refused. ok is false for other errors.
func NotVerified(err error) (state conditions.State, ok bool) {
	refusal := imagepolicy.RefusalOf(err)
	if refusal == nil {
		return state, false
	}
	var pull *registry.PullError
	unreachable := errors.As(refusal.Err, &pull) && pull.Temporary
	return conditions.State{Stalled: !unreachable, Reason: corev1alpha1.ReasonImageNotVerified, Message: refusal.Error() + "."}, true
}

// Report sets the condition Verified on the owner of an image. A nil outcome removes it, because no
// signature is required.
func Report(conds *[]metav1.Condition, generation int64, outcome *imagepolicy.Outcome) {
	switch {
	case outcome == nil:
		conditions.Remove(conds, corev1alpha1.ConditionVerified)
	case outcome.Verified != nil:
		conditions.Set(conds, generation, corev1alpha1.ConditionVerified, true, corev1alpha1.ReasonVerified, outcome.Verified.String())
	case outcome.Refusal.Unknown():
		conditions.SetUnknown(conds, generation, corev1alpha1.ConditionVerified, string(outcome.Refusal.Reason), outcome.Refusal.Error()+".")
	default:
		conditions.Set(conds, generation, corev1alpha1.ConditionVerified, false, string(outcome.Refusal.Reason), outcome.Refusal.Error()+".")
	}
}
