package packages

import (
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
)

// note notes the generation of a Package. Who has made it is known where this process has seen the one before, or the Package is new.
func (c *specChange) note(pkg corev1alpha1.GenericPackage, isNew bool) {
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

// decided drops the change where nothing is loaded for it.
func (c *specChange) decided(next step) {
	switch next {
	case stepLoad, stepGather, stepPaused: // it waits
	default:
		c.by = nil
	}
}

// begin records with a load who changed the spec for it; one that repeats the last has that from it. No spec asks for the new digest of
// a tag, or for another environment.
func (c *specChange) begin(a, last *attempt, reuse unpacked) {
	repeats := last != nil && last.Out.deployed.IsZero() && last.In.since == c.since &&
		last.In.fingerprint == a.In.fingerprint && last.In.newDigest == a.In.newDigest
	switch {
	case repeats:
		a.In.by = last.In.by
	case a.In.newDigest == "" && reuse == unpackedNever:
		a.In.by = c.by
	}
	a.In.since, c.by = c.since, nil
}

// changedWith returns the annotations that say what changed the spec. The managed fields say so only if it has written an entry: a
// client that removes a field that others have written leaves none.
func changedWith(writer [2]string, wrote bool) map[string]string {
	if !wrote {
		return map[string]string{}
	}
	return map[string]string{corev1alpha1.ChangedWithAnnotation: writer[0], corev1alpha1.ChangedAtAnnotation: writer[1]}
}

// writerOf returns the field manager that wrote the spec last, and when, as the caches keep it; empty where they do not.
func writerOf(pkg corev1alpha1.GenericPackage) (writer [2]string) {
	if fields := pkg.GetManagedFields(); len(fields) == 1 && fields[0].FieldsV1 == nil && fields[0].Time != nil {
		writer = [2]string{fields[0].Manager, fields[0].Time.UTC().Format(time.RFC3339)}
	}
	return writer
}

// asksFor identifies the content that a spec asks for; empty where it is not valid.
func asksFor(pkg corev1alpha1.GenericPackage) string {
	ref, err := json.Marshal(pkg.PackageSpec().PackageRef)
	if err != nil {
		return ""
	}
	content, err := fingerprintOf(pkg, choice.Origin{Image: pkg.PackageSpec().Image}, manifestsv1alpha1.PackageEnvironment{}, nil, "")
	if err != nil {
		return ""
	}
	return content.spec + string(ref)
}

// unnamed removes who changed the spec from a deployment.
func unnamed() map[string]string {
	return map[string]string{corev1alpha1.ChangedWithAnnotation: "", corev1alpha1.ChangedAtAnnotation: ""}
}
