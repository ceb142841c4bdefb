package load

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
)

// Fingerprint identifies the input that a package is rendered from, as status.unpackedHash records
// it: hashes of canonical JSON.
type Fingerprint struct{ Spec, Environment string }

// fingerprintPrefix distinguishes these hashes from the hashes of other engines and versions.
const fingerprintPrefix = "v1-"

// String returns the form of status.unpackedHash.
func (f Fingerprint) String() string { return fingerprintPrefix + f.Spec + "-" + f.Environment }

// parseFingerprint reads a status.unpackedHash; ok is false for foreign ones.
func parseFingerprint(hash string) (f Fingerprint, ok bool) {
	rest, ok := strings.CutPrefix(hash, fingerprintPrefix)
	if !ok {
		return Fingerprint{}, false
	}
	f.Spec, f.Environment, ok = strings.Cut(rest, "-")
	return f, ok
}

// FingerprintOf hashes spec, origin, environment, versions of sources, and overrides. Empty fields
// are left out, so that an engine that knows more fields computes the same.
func FingerprintOf(
	pkg corev1alpha1.GenericPackage, from choice.Origin, env manifestsv1alpha1.PackageEnvironment, versions map[string]string, overrides string,
) (Fingerprint, error) {
	spec := pkg.PackageSpec()
	var config any
	if spec.Config != nil && len(spec.Config.Raw) > 0 {
		if err := json.Unmarshal(spec.Config.Raw, &config); err != nil {
			return Fingerprint{}, fmt.Errorf("spec.config is not valid JSON: %w", err)
		}
	}

	content := map[string]any{
		"image": from.Image, "component": spec.Component, "config": config,
		"chunking": pkg.GetAnnotations()[corev1alpha1.ChunkingStrategyAnnotation],
	}

	add := func(key string, set bool, value any) {
		if set {
			content[key] = value
		}
	}

	add("files", from.Digest != "", from.Digest)
	add("overrides", len(overridesOf(spec)) > 0, overridesOf(spec))
	add("version", from.Version != "", from.Version)
	add("configFrom", len(spec.ConfigFrom) > 0, spec.ConfigFrom)
	add("patches", len(spec.Patches) > 0, spec.Patches)
	add("ignoredFields", len(spec.IgnoredFields) > 0, spec.IgnoredFields)
	add("commonMetadata", spec.CommonMetadata != nil, spec.CommonMetadata)
	add("targetRef", spec.TargetRef != nil, spec.TargetRef)
	add("defaultNamespace", spec.DefaultNamespace != "", spec.DefaultNamespace)
	add("collisionProtection", spec.CollisionProtection != "", spec.CollisionProtection)
	specHash, err := hash(content)
	if err != nil {
		return Fingerprint{}, err
	}

	var around any = env
	if len(versions) > 0 {
		around = map[string]any{"environment": env, "versions": versions}
	}
	if overrides != "" {
		around = map[string]any{"around": around, "overrides": overrides}
	}

	environment, err := hash(around)
	return Fingerprint{Spec: specHash, Environment: environment}, err
}

// overridesOf returns the overrides in the spec for dependencies in the manifest.
func overridesOf(spec *corev1alpha1.PackageSpec) map[string]*corev1alpha1.DependencyPackageOverride {
	if spec.Dependencies == nil {
		return nil
	}
	changed := map[string]*corev1alpha1.DependencyPackageOverride{}
	for _, o := range spec.Dependencies.Overrides {
		if o.Package != nil {
			changed[o.Name] = o.Package
		}
	}
	return changed
}

// hash hashes a value by its JSON. It decodes the JSON first, because decoded maps have sorted keys
// and struct fields do not.
func hash(value any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return "", err
	}
	return HashJSON(decoded)
}

// HashJSON hashes decoded JSON.
func HashJSON(decoded any) (string, error) {
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16]), nil
}

// Canonical sorts the keys of JSON and removes spaces.
func Canonical(raw []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Unpacked relates the content that was unpacked last to a fingerprint.
type Unpacked int

// Relations of the content that was unpacked last.
const (
	UnpackedNever     Unpacked = iota // another spec was unpacked last, or none
	UnpackedElsewhere                 // the same spec in another environment
	UnpackedCurrent                   // no objects to render
)

// Compare relates the content unpacked last to the content that would be rendered now. The hash of
// an earlier engine is current if its conditions report this generation as unpacked.
func Compare(pkg corev1alpha1.GenericPackage, now Fingerprint) Unpacked {
	status := pkg.PackageStatus()
	switch last, ours := parseFingerprint(status.UnpackedHash); {
	case !ours && status.UnpackedHash != "" && meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionInvalid) == nil &&
		conditions.IsTrueFor(status.Conditions, corev1alpha1.ConditionUnpacked, pkg.GetGeneration()):
		return UnpackedCurrent
	case !ours:
		return UnpackedNever
	case last == now:
		return UnpackedCurrent
	case last.Spec == now.Spec:
		return UnpackedElsewhere
	}

	return UnpackedNever
}

// Reference returns the reference to pull: the digest of a tag that has moved, or the reference by
// the pull policy.
func Reference(pkg corev1alpha1.GenericPackage, image string, reuse Unpacked, newDigest string) string {
	if newDigest != "" {
		return sources.ByDigest(image, newDigest)
	}
	return sources.Reference(pkg, image, reuse == UnpackedNever)
}
