package mutationcache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// reducedAnnotation is on reduced objects, in the caches alone.
const reducedAnnotation = "lockstep.run/reduced"

// Reduced reports whether Reduce dropped fields of an object. A caller that needs them reads the
// object from the API server.
func Reduced(object metav1.Object) bool { return object.GetAnnotations()[reducedAnnotation] != "" }

// Bulk returns how many bytes of an object Reduce drops.
func Bulk(object metav1.Object) (bytes int64) {
	count := func(texts map[string]string) {
		for key, text := range texts {
			bytes += int64(len(key) + len(text))
		}
	}

	switch o := object.(type) {
	case corev1alpha1.GenericPackage:
		spec := o.PackageSpec()
		if spec.Config != nil {
			bytes += int64(len(spec.Config.Raw))
		}
		for i := range spec.Patches {
			bytes += int64(len(spec.Patches[i].Patch))
		}
		if spec.CommonMetadata != nil {
			count(spec.CommonMetadata.Annotations)
		}
	case corev1alpha1.GenericPackageRepository:
		if inline := o.RepositorySpec().Source.Inline; inline != nil {
			count(inline.Files)
		}
	default:
		return 0
	}

	count(object.GetAnnotations())
	return bytes
}

// keptAnnotations bounds the bytes of the engine's annotations that a reduced object keeps.
const keptAnnotations = 8 << 10

// Reduce drops texts of any length that users write into Packages and repositories, and that no
// decision about others reads. The files of a repository become their digest.
func Reduce(object metav1.Object) {
	switch o := object.(type) {
	case corev1alpha1.GenericPackage:
		spec := o.PackageSpec()
		spec.Config, spec.Patches, spec.CommonMetadata = nil, nil, nil
	case corev1alpha1.GenericPackageRepository:
		if inline := o.RepositorySpec().Source.Inline; inline != nil && len(inline.Files) > 0 {
			hash := sha256.New()
			for _, name := range slices.Sorted(maps.Keys(inline.Files)) {
				_, _ = fmt.Fprintf(hash, "%q%q", name, inline.Files[name])
			}
			inline.Files = map[string]string{reducedAnnotation: hex.EncodeToString(hash.Sum(nil))}
		}
	default:
		return
	}

	kept, bytes := map[string]string{reducedAnnotation: "true"}, 0
	annotations := object.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		size := len(key) + len(annotations[key])
		if group, _, _ := strings.Cut(key, "/"); group == corev1alpha1.GroupName && bytes+size <= keptAnnotations {
			kept[key], bytes = annotations[key], bytes+size
		}
	}

	object.SetAnnotations(kept)
}
