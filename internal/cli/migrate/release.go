package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// releaseCommand is kubectl package release.
type releaseCommand struct{ handoverCommand }

// newRelease returns the command release.
func newRelease(on command.Command) *cobra.Command {
	c := &releaseCommand{handoverCommand{Command: on}}
	cmd := command.Runs(&cobra.Command{
		Use:   "release KIND/NAME...",
		Short: "Make a package release single objects without deleting them (all packages: release-engine)",
		Long: `Make a package release objects to others: only the owner reference and the label of the engine are removed.
Then kubectl, Helm or another package can take them (adopt). The package continues without them: a patch
in its spec.patches deletes each from its rendered objects. Remove that patch if a later version does not contain
the object. adopt removes it too.

All objects have to belong to one package. The last object of a package cannot be released: set
spec.deletionPolicy: Orphan and delete the package. After --wait=false, remove the
annotation package-operator.run/deletion-policy yourself.`,
		Example: `  kubectl package release configmap/settings -n shop`,
		Args:    cobra.ArbitraryArgs,
	}, cluster.ParseObjects, c.run)

	c.add(cmd, "watch until the objects are released")
	return cmd
}

// run makes the plan of the package without the objects, and releases them after a confirmation.
func (c *releaseCommand) run(ctx context.Context, names []cluster.ObjectName) error {
	h, err := c.read(ctx, names)
	if err != nil {
		return err
	}
	name, err := packageOf(ctx, h)
	if err != nil {
		return err
	}

	err = c.load(ctx, h, name, func(t progress.Target, spec *corev1alpha1.PackageSpec) error {
		for _, o := range h.objects {
			namespace := o.Key.Namespace
			if t.Scope == corev1alpha1.ScopeNamespaced || namespace == spec.DefaultNamespace {
				namespace = "" // the package can omit it
			}
			if err := addPatch(spec, o, namespace); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	if err := h.make(ctx, corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep); err != nil {
		return err
	}
	if h.Before.GetLabels()[corev1alpha1.GeneratedLabel] == "true" {
		// Patches in its spec would be overwritten.
		return fmt.Errorf("%s was installed for other packages, which control its spec. Make it your own first: kubectl annotate %s %s=true",
			h.Target, h.Target.Flags(), corev1alpha1.AdoptAnnotation)
	}

	phases, err := h.phases()
	switch {
	case err != nil:
		return err
	case len(phases) == 0:
		return fmt.Errorf("%s would have no objects left. Delete it, and keep its objects: set spec.deletionPolicy: Orphan, then kubectl package delete %s", h.Target, h.Target.Flags())
	}

	steps := releaseSteps(h.objects, h.plan)
	err = c.show(h, "Objects that "+h.Target.String()+" releases", steps)
	if others := removedBesides(steps, h.plan); err == nil && len(others) > 0 {
		// The annotation keeps only the named objects, so this revision would delete the others.
		err = fmt.Errorf("nothing was changed: %s would remove other objects with its next revision, too: %s. Roll that out first",
			h.Target, strings.Join(others[:min(len(others), command.MostNamed)], ", "))
	}

	if err != nil || c.dryRun {
		return err
	}
	if err := c.Confirm(fmt.Sprintf("Let %s release %s?", h.Target, terminal.Count(len(steps), "object"))); err != nil {
		return err
	}

	return c.release(ctx, h, steps)
}

// packageOf finds the one package that controls all objects. It returns an error for objects of
// another controller, or of a deployment without a package.
func packageOf(ctx context.Context, h *handoverPlan) (n cluster.Name, err error) {
	first := h.objects[0]
	controller := metav1.GetControllerOf(first.Live)
	for _, o := range h.objects {
		switch owner := metav1.GetControllerOf(o.Live); {
		case owner == nil:
			return n, fmt.Errorf("%s does not belong to a package: it has no controller", o.Key)
		case owner.UID != controller.UID:
			return n, fmt.Errorf("%s belongs to %s %s, and %s to %s %s: release them one package after the other",
				first.Key, controller.Kind, controller.Name, o.Key, owner.Kind, owner.Name)
		}
	}

	n = cluster.Name{Scope: corev1alpha1.ScopeNamespaced, Name: controller.Name}
	if controller.Kind == corev1alpha1.ScopeCluster.Kind("ObjectDeployment") {
		n.Scope = corev1alpha1.ScopeCluster
	}
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil || gv.Group != corev1alpha1.GroupName || controller.Kind != n.Scope.Kind("ObjectDeployment") {
		return n, fmt.Errorf("%s does not belong to a package: %s %s controls it", first.Key, controller.Kind, controller.Name)
	}

	key := client.ObjectKey{Name: controller.Name}
	if n.Scope == corev1alpha1.ScopeNamespaced {
		key.Namespace, h.cluster.Namespace = first.Key.Namespace, first.Key.Namespace // the package's own
	}
	dep := n.Scope.NewObjectDeployment()
	if err := h.cluster.Get(ctx, key, dep); err != nil {
		return n, h.cluster.Explain("cannot read "+controller.Kind+" "+controller.Name, err)
	}
	if owner := metav1.GetControllerOf(dep); dep.GetUID() != controller.UID || owner == nil || owner.Kind != n.Scope.Kind("Package") || owner.Name != n.Name {
		// The UID excludes a deployment that was created again under the same name.
		return n, fmt.Errorf("%s belongs to %s %s, which no package created: annotate the object %s=%s, and remove it from the template",
			first.Key, controller.Kind, controller.Name, corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
	}

	return n, nil
}

// release annotates the objects, and then removes them from the package. It removes the annotation
// once they have no controller.
func (c *releaseCommand) release(ctx context.Context, h *handoverPlan, steps []step) error {
	for _, s := range steps {
		if err := h.annotate(ctx, s.object, corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep); err != nil {
			return err
		}
	}

	// All objects have the annotation by now. Otherwise the revision without them would delete
	// them.
	done := desired.Applied{Pkg: h.Before, Before: h.Before.DeepCopyObject().(corev1alpha1.GenericPackage)}
	if err := h.patchPatches(ctx); err != nil {
		// Without the patch, the package keeps the objects, so the annotation must not stay.
		return errors.Join(err, h.unkeep(ctx, steps))
	}
	is := func(controller *metav1.OwnerReference) bool {
		return controller == nil || controller.UID != h.deployment
	}
	return c.follow(ctx, h, done, steps, "releases", "released", is, func() error { return h.unkeep(ctx, steps) })
}

// unkeep removes the annotation that keeps objects, unless they had it before.
func (h *handoverPlan) unkeep(ctx context.Context, steps []step) error {
	var failed error
	for _, s := range steps {
		if s.Live.GetAnnotations()[corev1alpha1.DeletionPolicyAnnotation] != corev1alpha1.DeletionPolicyKeep {
			failed = errors.Join(failed, h.annotate(ctx, s.object, corev1alpha1.DeletionPolicyAnnotation, nil))
		}
	}
	return failed
}

// patchPatches writes the planned spec.patches of the package, unless its spec has changed since.
// The generation is tested, because each change of a spec increases it.
func (h *handoverPlan) patchPatches(ctx context.Context) error {
	patch := []desired.Operation{{Op: "test", Path: "/metadata/generation", Value: h.Before.GetGeneration()}}
	if patches := h.Pkg.PackageSpec().Patches; len(patches) > 0 {
		patch = append(patch, desired.Operation{Op: "add", Path: "/spec/patches", Value: patches})
	} else {
		patch = append(patch, desired.Operation{Op: "remove", Path: "/spec/patches"})
	}

	return desired.Patch(ctx, h.cluster, h.Target, h.Before, patch)
}
