package engine

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
)

// replacement is a patch that makes an object match its template.
type replacement struct {
	// intent and resourceVersion identify the write that the replacement is for, and the state of
	// the object that it is based on.
	intent          intent
	resourceVersion string
	// patch is nil if an apply does the same, or all that can be done.
	patch []byte
	// kept are the fields that an adopted object keeps from its installer, since they cannot
	// change.
	kept []string
	// foreseen is the object that the template implies, for an object that is adopted.
	foreseen *unstructured.Unstructured
	// residue are the fields that left the template, and that the API server keeps nevertheless.
	residue []string
	// yielded are the managers whose fields gave way.
	yielded []string
}

// intent identifies the object that a step will write.
type intent struct {
	template objects.Digest
	revision int64
}

// surprised reports whether the answer to an apply that adopts an object differs from the foreseen
// one.
func (r *replacement) surprised(answer *unstructured.Unstructured) bool {
	return r != nil && r.foreseen != nil && answer != nil && !sameContent(answer, r.foreseen)
}

func withoutMetadata(obj map[string]any) map[string]any {
	rest := make(map[string]any, len(obj))
	for key, v := range obj {
		if key != "metadata" && key != "status" && key != "apiVersion" {
			rest[key] = v
		}
	}
	return rest
}

// sameContent compares objects without their metadata and status.
func sameContent(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(withoutMetadata(a.Object), withoutMetadata(b.Object))
}
