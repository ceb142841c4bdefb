package hostedclusterpackages

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/drift"
)

// template has the labels, annotations and spec that a HostedClusterPackage sets on each of its
// Packages, as JSON, without fields that are not set.
type template struct {
	owner   *corev1alpha1.HostedClusterPackage
	content map[string]any
	// hash identifies the content. It is on each Package, so that fields that leave the template
	// are noticed.
	hash string
}

func templateOf(owner *corev1alpha1.HostedClusterPackage) (*template, error) {
	from := owner.Spec.Template
	content, err := contentOf(from.Metadata.Labels, from.Metadata.Annotations, &from.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode the template: %w", err)
	}
	return &template{owner: owner, content: content, hash: drift.Hash(content)}, nil
}

// contentOf returns the content to compare between templates and Packages.
func contentOf(labels, annotations map[string]string, spec *corev1alpha1.PackageSpec) (map[string]any, error) {
	type metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	encoded, err := json.Marshal(map[string]any{"metadata": metadata{labels, annotations}, "spec": spec})
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	err = json.Unmarshal(encoded, &content)
	return content, err
}

// matches reports whether a Package matches the template. It ignores further fields that other
// clients set. A Package without a hash was made by an earlier engine, and is compared by its
// values.
func (t *template) matches(pkg *corev1alpha1.Package) (bool, error) {
	if hash := pkg.Annotations[corev1alpha1.HashAnnotation]; hash != "" && hash != t.hash {
		return false, nil
	}
	live, err := contentOf(pkg.Labels, pkg.Annotations, &pkg.Spec)
	if err != nil {
		return false, fmt.Errorf("encode Package %s/%s: %w", pkg.Namespace, pkg.Name, err)
	}
	return drift.Matches(apinames.Default, t.content, live, nil), nil
}

// body returns the object to apply. Its guards are the UID and the resourceVersion of the known
// Package, or its absence: it contains the owner reference, so a Package that was orphaned since
// would be deleted.
func (t *template) body(namespace string, known *corev1alpha1.Package) *unstructured.Unstructured {
	u := (&unstructured.Unstructured{Object: t.content}).DeepCopy()
	u.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("Package"))
	u.SetNamespace(namespace)
	u.SetName(t.owner.Name)
	objectsets.Annotate(u, corev1alpha1.HashAnnotation, t.hash)
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(t.owner, ownerKind)})
	if known == nil {
		u.SetResourceVersion(apply.AbsentVersion)
	} else {
		u.SetUID(known.UID)
		u.SetResourceVersion(known.ResourceVersion)
	}

	return u
}

var ownerKind = corev1alpha1.GroupVersion.WithKind("HostedClusterPackage")
