package activation

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/background"
)

// Content identifies content that is rejected: a template, and the package that it was rendered
// from.
type Content struct{ Hash, Version, Digest string }

// ContentOf returns the content of a deployment or of a set, whose template has a hash.
func ContentOf(obj metav1.Object, hash string) Content {
	return Content{hash, VersionOf(obj), obj.GetAnnotations()[corev1alpha1.PackageDigestAnnotation]}
}

// OfSet returns the content of a set.
func OfSet(set corev1alpha1.GenericObjectSet) Content { return ContentOf(set, HashOf(set)) }

// HashOf returns the hash of the template of a set.
func HashOf(set corev1alpha1.GenericObjectSet) string {
	return set.GetAnnotations()[corev1alpha1.HashAnnotation]
}

// VersionOf returns the version of a package as its manifest states it.
func VersionOf(obj metav1.Object) string {
	return strings.ReplaceAll(obj.GetLabels()[corev1alpha1.PackageVersionLabel], "_", "+")
}

// Rejections are the rejected contents of a deployment.
type Rejections []corev1alpha1.RejectedContent

// RejectionsOf returns the rejections that no retry has ended.
func RejectionsOf(deployment corev1alpha1.GenericObjectDeployment) Rejections {
	retry := background.RetryValue(deployment)
	var all Rejections
	for _, r := range deployment.ObjectDeploymentStatus().Rejected {
		if r.Retry == retry {
			all = append(all, r)
		}
	}
	return all
}

func (all Rejections) index(c Content) int {
	return slices.IndexFunc(all, func(r corev1alpha1.RejectedContent) bool { return c == Content{r.TemplateHash, r.Version, r.Digest} })
}

// Has reports whether a content is rejected.
func (all Rejections) Has(c Content) bool { return c.Hash != "" && all.index(c) >= 0 }

// Of returns the rejection of the revision with a number, or the last one if the revision no longer
// exists; nil if there is none.
func (all Rejections) Of(number string, sets []corev1alpha1.GenericObjectSet) *corev1alpha1.RejectedContent {
	for _, set := range sets {
		if strconv.FormatInt(set.ObjectSetSpec().Revision, 10) != number {
			continue
		}
		if i := all.index(OfSet(set)); i >= 0 {
			return &all[i]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// RejectedByUser reports whether a user has asked for the rejection of a set.
func RejectedByUser(set corev1alpha1.GenericObjectSet) bool {
	return set.GetAnnotations()[corev1alpha1.RejectedAnnotation] == "true" && set.GetDeletionTimestamp() == nil
}

// RolledBackFrom reports whether one of the sets took over from a set in a rollback.
func RolledBackFrom(set corev1alpha1.GenericObjectSet, sets []corev1alpha1.GenericObjectSet) bool {
	number := strconv.FormatInt(set.ObjectSetSpec().Revision, 10)
	return slices.ContainsFunc(sets, func(by corev1alpha1.GenericObjectSet) bool {
		return by.GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] == number
	})
}
