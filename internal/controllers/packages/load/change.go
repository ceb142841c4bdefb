package load

import (
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
)

// SpecChange is the last change of the content that the spec of a Package names, and its author.
type SpecChange struct {
	// generation is the last one that was seen, and since is the first one that names the same
	// content. asks identifies that content, and writer is the last entry of the managed fields.
	generation, since int64
	asks              string
	writer            [2]string
	// by are the annotations of a deployment that is loaded for the change; nil if unknown, and
	// once a load has started or none was needed, because later loads have other reasons.
	by map[string]string
}

// Note notes the generation of a Package. The author of the change is known if this process has
// seen the generation before, or if the Package is new.
func (c *SpecChange) Note(pkg corev1alpha1.GenericPackage, isNew bool) {
	generation := pkg.GetGeneration()
	if generation == c.generation {
		return
	}

	asks, writer := asksFor(pkg), writerOf(pkg)
	next := generation == c.generation+1 && (c.generation > 0 || isNew)
	if asks != c.asks || !next {
		c.since, c.by = generation, nil
		if next {
			c.by = changedWith(writer, writer != c.writer)
		}
	}

	c.generation, c.asks, c.writer = generation, asks, writer
}

// Drop drops the change if no load is made for it.
func (c *SpecChange) Drop() { c.by = nil }

// attribute records with a load who changed the spec for it; a repeated load copies that from the
// last one. The new digest of a tag and another environment are not changes of the spec.
func (c *SpecChange) attribute(a, last *Attempt, reuse Unpacked) {
	repeats := last != nil && last.Out.Deployed.IsZero() && last.In.since == c.since &&
		last.In.Fingerprint == a.In.Fingerprint && last.In.NewDigest == a.In.NewDigest
	switch {
	case repeats:
		a.In.By = last.In.By
	case a.In.NewDigest == "" && reuse == UnpackedNever:
		a.In.By = c.by
	}
	a.In.since, c.by = c.since, nil
}

// changedWith returns the annotations that record the author of a change to the spec. The managed
// fields name the author only if it has written an entry: a client that removes a field that others
// have written leaves none.
func changedWith(writer [2]string, wrote bool) map[string]string {
	if !wrote {
		return map[string]string{}
	}
	return map[string]string{corev1alpha1.ChangedWithAnnotation: writer[0], corev1alpha1.ChangedAtAnnotation: writer[1]}
}

// writerOf returns the field manager that wrote the spec last, and when, as the caches keep it;
// empty if they do not.
func writerOf(pkg corev1alpha1.GenericPackage) (writer [2]string) {
	if fields := pkg.GetManagedFields(); len(fields) == 1 && fields[0].FieldsV1 == nil && fields[0].Time != nil {
		writer = [2]string{fields[0].Manager, fields[0].Time.UTC().Format(time.RFC3339)}
	}
	return writer
}

// asksFor identifies the content that a spec names; empty if it is not valid.
func asksFor(pkg corev1alpha1.GenericPackage) string {
	ref, err := json.Marshal(pkg.PackageSpec().PackageRef)
	if err != nil {
		return ""
	}
	content, err := FingerprintOf(pkg, choice.Origin{Image: pkg.PackageSpec().Image}, manifestsv1alpha1.PackageEnvironment{}, nil, "")
	if err != nil {
		return ""
	}
	return content.Spec + string(ref)
}

// Unnamed removes who changed the spec from a deployment.
func Unnamed() map[string]string {
	return map[string]string{corev1alpha1.ChangedWithAnnotation: "", corev1alpha1.ChangedAtAnnotation: ""}
}
