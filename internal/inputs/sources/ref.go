package sources

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/quota"
)

// The kinds of sources.
const (
	KindSecret         = "Secret"
	KindConfigMap      = "ConfigMap"
	KindServiceAccount = "ServiceAccount"
)

// Ref names a source. Group and Version are empty for the sources of Packages, which belong to the
// core API. Namespace is empty for cluster-scoped kinds.
type Ref struct {
	Group, Version, Kind, Namespace, Name string
}

// String returns the name for messages, such as Secret team/credentials.
func (r Ref) String() string {
	kind := schema.GroupKind{Group: r.Group, Kind: r.Kind}.String()
	if r.Namespace == "" {
		return kind + " " + r.Name
	}
	return kind + " " + r.Namespace + "/" + r.Name
}

// memory returns the key of the content in the memory account.
func (r Ref) memory() quota.Key {
	return quota.Key{Namespace: r.Namespace, Name: "the source " + r.String()}
}

// GroupKind returns the kind of the source.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

func (r Ref) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(r.Kind) + "s"}
}

// RefsOf returns the objects that a Package is rendered from, sorted. namespace is the manager's
// for a ClusterPackage.
func RefsOf(spec *corev1alpha1.PackageSpec, namespace string) []Ref {
	var refs []Ref
	for i := range spec.ConfigFrom {
		refs = append(refs, refOf(&spec.ConfigFrom[i], namespace))
	}
	for i := range spec.Patches {
		if from := spec.Patches[i].PatchFrom; from != nil {
			refs = append(refs, refOf(from, namespace))
		}
	}
	return sorted(refs)
}

// PullSecrets returns the Secrets with credentials that a Package names, sorted.
func PullSecrets(spec *corev1alpha1.PackageSpec, namespace string) []Ref {
	refs := make([]Ref, len(spec.ImagePullSecrets))
	for i, ref := range spec.ImagePullSecrets {
		refs[i] = Ref{Kind: KindSecret, Namespace: namespace, Name: ref.Name}
	}
	return sorted(refs)
}

// Union returns the refs of both lists, sorted.
func Union(a, b []Ref) []Ref { return sorted(slices.Concat(a, b)) }

func sorted(refs []Ref) []Ref {
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version),
		)
	})
	return slices.Compact(refs)
}

// Sorted returns the refs sorted and without duplicates.
func Sorted(refs []Ref) []Ref { return sorted(slices.Clone(refs)) }

func refOf(source *corev1alpha1.ValueSource, namespace string) Ref {
	if source.SecretKeyRef != nil {
		return Ref{Kind: KindSecret, Namespace: namespace, Name: source.SecretKeyRef.Name}
	}
	ref := Ref{Kind: KindConfigMap, Namespace: namespace}
	if source.ConfigMapKeyRef != nil {
		ref.Name = source.ConfigMapKeyRef.Name
	}
	return ref
}

// FromSecrets reports whether a Package is rendered from Secrets.
func FromSecrets(spec *corev1alpha1.PackageSpec) bool {
	return slices.ContainsFunc(RefsOf(spec, ""), func(ref Ref) bool { return ref.Kind == KindSecret })
}

func key(source *corev1alpha1.ValueSource) (name string, optional bool) {
	switch {
	case source.SecretKeyRef != nil:
		return source.SecretKeyRef.Key, source.SecretKeyRef.Optional
	case source.ConfigMapKeyRef != nil:
		return source.ConfigMapKeyRef.Key, source.ConfigMapKeyRef.Optional
	}
	return "", false
}

func sensitive(source *corev1alpha1.ValueSource) bool {
	ref := source.SecretKeyRef
	return ref != nil && (ref.Sensitive == nil || *ref.Sensitive)
}
