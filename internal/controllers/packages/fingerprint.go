package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
)

// fingerprint names what a package is rendered from, as status.unpackedHash
// records it. It is a hash of canonical JSON and independent of Go types.
type fingerprint struct {
	// spec covers what the Package says.
	spec string
	// environment covers the cluster, and the versions of what the Package names.
	environment string
}

// fingerprintPrefix tells our hashes from those of an earlier engine, and from
// those of a later way to compute them.
const fingerprintPrefix = "v1-"

// String returns the form of status.unpackedHash.
func (f fingerprint) String() string { return fingerprintPrefix + f.spec + "-" + f.environment }

// parseFingerprint reads a status.unpackedHash; ok is false for foreign ones.
func parseFingerprint(hash string) (f fingerprint, ok bool) {
	rest, ok := strings.CutPrefix(hash, fingerprintPrefix)
	if !ok {
		return fingerprint{}, false
	}
	f.spec, f.environment, ok = strings.Cut(rest, "-")
	return f, ok
}

// fingerprintOf hashes what a package is rendered from: spec, environment, the versions
// of referenced Secrets and ConfigMaps, and the manager's overrides. What is not set is
// left out, so that an engine that knows more fields computes the same.
func fingerprintOf(
	pkg corev1alpha1.GenericPackage, env manifestsv1alpha1.PackageEnvironment, versions map[string]string, overrides string,
) (fingerprint, error) {
	spec := pkg.PackageSpec()
	var config any
	if spec.Config != nil && len(spec.Config.Raw) > 0 {
		if err := json.Unmarshal(spec.Config.Raw, &config); err != nil {
			return fingerprint{}, fmt.Errorf("spec.config is not valid JSON: %w", err)
		}
	}
	content := map[string]any{
		"image": spec.Image, "component": spec.Component, "config": config,
		"chunking": pkg.GetAnnotations()[corev1alpha1.ChunkingStrategyAnnotation],
	}
	for key, set := range map[string]struct {
		is    bool
		value any
	}{
		"configFrom":          {len(spec.ConfigFrom) > 0, spec.ConfigFrom},
		"patches":             {len(spec.Patches) > 0, spec.Patches},
		"commonMetadata":      {spec.CommonMetadata != nil, spec.CommonMetadata},
		"defaultNamespace":    {spec.DefaultNamespace != "", spec.DefaultNamespace},
		"collisionProtection": {spec.CollisionProtection != "", spec.CollisionProtection},
	} {
		if set.is {
			content[key] = set.value
		}
	}
	specHash, err := hash(content)
	if err != nil {
		return fingerprint{}, err
	}
	var around any = env
	if len(versions) > 0 {
		around = map[string]any{"environment": env, "versions": versions}
	}
	if overrides != "" {
		around = map[string]any{"around": around, "overrides": overrides}
	}
	aroundHash, err := hash(around)
	return fingerprint{spec: specHash, environment: aroundHash}, err
}

// hash returns 128 bits of the hash of canonical JSON: map keys are sorted, and
// a struct goes through a map.
func hash(value any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	if encoded, err = canonical(encoded); err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16]), nil
}

// canonical sorts the keys of JSON and takes spaces out.
func canonical(raw []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// unpacked says how status.unpackedHash relates to what would be rendered now.
type unpacked int

const (
	// unpackedNever: another spec was unpacked last, or none.
	unpackedNever unpacked = iota
	// unpackedElsewhere: the same spec in another environment.
	unpackedElsewhere
	// unpackedCurrent: nothing to render.
	unpackedCurrent
)

// compare relates what was unpacked last to what would be rendered now. The hash
// of an earlier engine cannot be computed again; it counts where that engine said
// that the current spec is unpacked.
func compare(pkg corev1alpha1.GenericPackage, now fingerprint) unpacked {
	status := pkg.PackageStatus()
	last, ours := parseFingerprint(status.UnpackedHash)
	switch {
	case !ours:
		known := status.UnpackedHash != "" &&
			conditions.IsTrueFor(status.Conditions, corev1alpha1.ConditionUnpacked, pkg.GetGeneration()) &&
			meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionInvalid) == nil
		if known {
			return unpackedCurrent
		}
		return unpackedNever
	case last == now:
		return unpackedCurrent
	case last.spec == now.spec:
		return unpackedElsewhere
	}
	return unpackedNever
}

// reference returns what to pull: a digest that the Package found its tag to stand
// for by now, moved, or else what the pull policy says.
func reference(pkg corev1alpha1.GenericPackage, reuse unpacked, moved string) string {
	if moved != "" {
		return sources.ByDigest(pkg.PackageSpec().Image, moved)
	}
	return sources.Reference(pkg, reuse == unpackedNever)
}

// tagged reports whether an image is named by a tag, which may move.
func tagged(image string) bool {
	ref, err := name.ParseReference(image)
	if err != nil {
		return false
	}
	_, isTag := ref.(name.Tag)
	return isTag
}
