package migrate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// object is an object with its current state.
type object struct {
	Key  objects.Key
	Live *unstructured.Unstructured
}

// step is the plan for one object.
type step struct {
	object

	// Refusal is the reason why the step is not possible; empty if it is.
	Refusal string

	// Done means that the object is already in the wanted state. Note can explain why.
	Done bool
	Note string
}

// adoptSteps returns a step for each object. owner is the UID of the package's deployment; empty if
// there is none yet. phases has the phases of the package's objects.
func adoptSteps(all []object, owner types.UID, phases map[objects.Key]string, plan *dryrun.Plan) []step {
	steps := make([]step, len(all))
	for i, o := range all {
		s := step{object: o}
		controller := metav1.GetControllerOf(o.Live)
		change := changeOf(plan, o.Key)
		switch {
		case phases[o.Key] == "":
			s.Refusal = "the package does not contain it: a package only adopts its own objects"
		case controller != nil && controller.UID == owner:
			s.Done = true
		case o.Live.GetDeletionTimestamp() != nil:
			s.Refusal = "it is being deleted"
		case refusalOf(plan, o.Key) != "":
			s.Refusal = refusalOf(plan, o.Key)
		case change == nil || change.Action != dryrun.ActionTakeOver:
			s.Done = true // it belongs to an earlier revision
		}

		steps[i] = s
	}

	return steps
}

// releaseSteps returns a step for each object that a package controls. The plan is for the package
// without the objects.
func releaseSteps(all []object, plan *dryrun.Plan) []step {
	steps := make([]step, len(all))
	for i, o := range all {
		s := step{object: o}
		released := slices.ContainsFunc(plan.Cleanup, func(c dryrun.Change) bool { return c.Key() == o.Key && c.Action == dryrun.ActionRelease })
		switch {
		case o.Live.GetDeletionTimestamp() != nil:
			s.Refusal = "it is being deleted"
		case !released:
			s.Refusal = "the package would not release it: see kubectl package plan"
		}
		steps[i] = s
	}

	return steps
}

// removedBesides returns the names of further objects that the plan removes.
func removedBesides(steps []step, plan *dryrun.Plan) []string {
	var names []string
	for i := range plan.Cleanup {
		c := &plan.Cleanup[i]
		if !slices.ContainsFunc(steps, func(s step) bool { return s.Key == c.Key() }) {
			names = append(names, c.Object())
		}
	}
	return names
}

// changeOf returns the change of an object in a phase, or nil if it stays as it is.
func changeOf(plan *dryrun.Plan, key objects.Key) *dryrun.Change {
	for i := range plan.Phases {
		for j := range plan.Phases[i].Changes {
			if c := &plan.Phases[i].Changes[j]; c.Key() == key {
				return c
			}
		}
	}
	return nil
}

// refusalOf returns the reason why an object is refused; empty if it is not.
func refusalOf(plan *dryrun.Plan, key objects.Key) string {
	for i := range plan.Refusals {
		if plan.Refusals[i].Key() == key {
			return plan.Refusals[i].Message
		}
	}
	return ""
}

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
