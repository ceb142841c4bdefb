package migrate

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// deletion is a patch that deletes one object from a package's rendered objects.
type deletion struct {
	Directive  string   `json:"$patch"`
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
}

// metadata identifies the object of a deletion.
type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// addPatch adds the patch that deletes an object from the package's rendered objects, unless it
// exists. namespace is the object's rendered namespace; empty if the package omits it.
func addPatch(spec *corev1alpha1.PackageSpec, o object, namespace string) error {
	if slices.ContainsFunc(spec.Patches, func(p corev1alpha1.PackagePatch) bool { return releases(&p, o.Key) }) {
		return nil
	}
	if len(spec.Patches) >= limits.Patches {
		return fmt.Errorf("spec.patches has %d patches, which is the limit: remove one, or leave the object out of the package", len(spec.Patches))
	}

	text, err := yaml.Marshal(deletion{"delete", o.Live.GetAPIVersion(), o.Key.Kind, metadata{o.Key.Name, namespace}})
	if err != nil {
		return err
	}
	spec.Patches = append(spec.Patches, corev1alpha1.PackagePatch{Patch: string(text)})

	return nil
}

// dropPatches removes addPatch's patches for objects, and reports whether there were any.
func dropPatches(spec *corev1alpha1.PackageSpec, all []object) bool {
	before := len(spec.Patches)
	spec.Patches = slices.DeleteFunc(slices.Clone(spec.Patches), func(p corev1alpha1.PackagePatch) bool {
		return slices.ContainsFunc(all, func(o object) bool { return releases(&p, o.Key) })
	})
	return len(spec.Patches) < before
}

// releases reports whether a patch deletes this object and does nothing else.
func releases(p *corev1alpha1.PackagePatch, key objects.Key) bool {
	var d deletion
	// A patch with a selector, from another object or with further fields is the user's own.
	if p.Target != nil || p.PatchFrom != nil || yaml.UnmarshalStrict([]byte(p.Patch), &d) != nil || d.Directive != "delete" {
		return false
	}
	gv, err := schema.ParseGroupVersion(d.APIVersion)
	return err == nil && gv.Group == key.Group && d.Kind == key.Kind && d.Metadata.Name == key.Name &&
		cmp.Or(d.Metadata.Namespace, key.Namespace) == key.Namespace
}
