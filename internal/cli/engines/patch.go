package engines

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Patch is a JSON patch of one object's metadata.
type Patch struct {
	// Of is the object as it was read.
	Of   metav1.Object
	JSON []byte
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// metadata are the fields that a patch can change. Nil maps and lists are empty.
type metadata struct {
	owners              []metav1.OwnerReference
	labels, annotations map[string]string
	finalizers          []string
}

// metadataOf returns a copy of an object's fields.
func metadataOf(obj metav1.Object) metadata {
	return metadata{
		owners: slices.Clone(obj.GetOwnerReferences()), finalizers: slices.Clone(obj.GetFinalizers()),
		labels: maps.Collect(maps.All(obj.GetLabels())), annotations: maps.Collect(maps.All(obj.GetAnnotations())),
	}
}

// patch returns the patch from the object's metadata to the wanted metadata, or nil if they are
// equal.
func patch(obj metav1.Object, to metadata) (*Patch, error) {
	from := metadataOf(obj)
	ops := []operation{
		{"test", "/metadata/uid", obj.GetUID()},
		{"test", "/metadata/resourceVersion", obj.GetResourceVersion()},
	}

	tests := len(ops)
	for _, field := range []struct {
		name     string
		from, to any
	}{
		{"ownerReferences", from.owners, to.owners}, {"labels", from.labels, to.labels},
		{"annotations", from.annotations, to.annotations}, {"finalizers", from.finalizers, to.finalizers},
	} {
		if !equality.Semantic.DeepEqual(field.from, field.to) {
			ops = append(ops, operation{"add", "/metadata/" + field.name, field.to})
		}
	}

	if len(ops) == tests {
		return nil, nil
	}
	text, err := json.Marshal(ops)
	return &Patch{Of: obj, JSON: text}, err
}

// Disown returns the patch that makes an object outlive its owners, or nil if it has none of them.
// It removes their owner references, and the label that an engine watches.
func Disown(obj metav1.Object, owners sets.Set[types.UID]) (*Patch, error) {
	owned := func(ref metav1.OwnerReference) bool { return owners.Has(ref.UID) }
	if !slices.ContainsFunc(obj.GetOwnerReferences(), owned) {
		return nil, nil
	}
	to := metadataOf(obj)
	to.owners = slices.DeleteFunc(to.owners, owned)
	delete(to.labels, corev1alpha1.CacheLabel)

	return patch(obj, to)
}

// formerFields are the fields of a Package that Package Operator has.
var formerFields = []string{"image", "config", "component", "paused"}

// Losses describes the fields of a package that Package Operator does not know.
func Losses(pkg corev1alpha1.GenericPackage) (lost []string, err error) {
	raw, err := json.Marshal(pkg.PackageSpec())
	if err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", pkg.GetName(), err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", pkg.GetName(), err)
	}

	var fields []string
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		if !slices.Contains(formerFields, field) {
			fields = append(fields, "spec."+field)
		}
	}

	if len(fields) > 0 {
		lost = append(lost, strings.Join(fields, ", ")+" is ignored")
	}
	if pkg.PackageSpec().Image == "" {
		lost = append(lost, "spec.image is missing: the installed objects stay, and no new image is unpacked")
	}

	return lost, nil
}
