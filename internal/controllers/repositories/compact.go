package repositories

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// digestAnnotation has the digest of the whole spec on objects in the caches alone.
const digestAnnotation = "lockstep.run/digest-of-spec"

// writtenAnnotation has the digest of the spec as it was written. If it differs from the digest of
// the spec, another client has changed it.
const writtenAnnotation = "package-operator.run/digest-as-written"

// Compact replaces the texts and schemas, which no decision reads, by a digest of the spec.
func Compact(object corev1alpha1.GenericAvailablePackage) {
	annotations := object.GetAnnotations()
	if annotations[digestAnnotation] != "" {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}

	spec := object.AvailableSpec()
	spec.Versions = canonical(spec.Versions)
	annotations[digestAnnotation] = digestOfCanonical(spec)
	annotations[offersAnnotation] = offersOf(spec)
	object.SetAnnotations(annotations)
	object.SetManagedFields(nil)
	spec.Display = nil
	for i := range spec.Versions {
		v := &spec.Versions[i]
		v.ConfigSchema, v.Release = nil, nil
		if i > 0 && slices.Equal(v.Provides, spec.Versions[i-1].Provides) {
			v.Provides = spec.Versions[i-1].Provides // most versions bring the same APIs
		}
	}
}

// digestOf returns a digest of a spec, the same before and after the API server stored it.
func digestOf(spec *corev1alpha1.AvailablePackageSpec) string {
	canon := *spec
	canon.Versions = canonical(spec.Versions)
	return digestOfCanonical(&canon)
}

// digestOfCanonical returns the digest of a spec whose schemas are in canonical form.
func digestOfCanonical(spec *corev1alpha1.AvailablePackageSpec) string {
	encoded, _ := json.Marshal(spec) // cannot fail: all of it is data, and schemas are valid JSON
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16])
}

// canonical returns versions whose schemas have sorted keys and no spaces.
func canonical(versions []corev1alpha1.AvailableVersion) []corev1alpha1.AvailableVersion {
	versions = slices.Clone(versions)
	for i := range versions {
		if schema := versions[i].ConfigSchema; schema != nil {
			versions[i].ConfigSchema = &runtime.RawExtension{Raw: canonicalJSON(schema.Raw)}
		}
	}
	return versions
}

// canonicalJSON sorts keys, because the API server does not keep the text of a schema.
func canonicalJSON(raw []byte) []byte {
	var value any
	if utiljson.Unmarshal(raw, &value) != nil {
		return []byte("null")
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return []byte("null")
	}
	return encoded
}
