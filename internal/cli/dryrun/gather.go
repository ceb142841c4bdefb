package dryrun

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/revisions"
)

// gather reads the deployment and its revisions, and compares the newest one with the template. It
// returns an error if the objects are in another cluster than the one to plan for.
func (c *Cluster) gather(ctx context.Context, r Request) (*input, error) {
	in := &input{Cluster: c, Request: r, now: time.Now(), stored: nothingStored()}
	// A deployment that does not exist yet needs a UID for the owner references of its objects.
	in.uid = uuid.NewUUID()
	in.key = objects.OwnerKey{Kind: r.Scope.Kind("ObjectDeployment"), Namespace: r.Namespace, Name: r.Name}
	dep := r.Scope.NewObjectDeployment()
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, dep)
	switch {
	case err == nil:
		in.deployment, in.uid = dep, dep.GetUID()
		recorded := types.UID(dep.GetAnnotations()[corev1alpha1.TargetClusterAnnotation])
		// Objects of a recreated or mistaken cluster would all be planned as new ones.
		if recorded != "" && recorded != in.ID {
			return nil, fmt.Errorf("the kubeconfig leads to another cluster than the one with the objects of %s: name the latter. "+
				"If the former cluster was recreated, remove the annotation %s from the deployment", in.key, corev1alpha1.TargetClusterAnnotation)
		}
		if r.KeepAccount {
			in.Template.ServiceAccountName = dep.ObjectDeploymentSpec().Template.Spec.ServiceAccountName
		}
	case !apply.IsAbsent(err):
		return nil, fmt.Errorf("read %s: %w", in.key, err)
	}

	if err := in.readSets(ctx); err != nil {
		return nil, err
	}

	return in, in.decide()
}

// readSets reads the revisions of the deployment, oldest first, with the objects of their slices.
// An archived revision does not need them.
func (in *input) readSets(ctx context.Context) error {
	if in.deployment == nil {
		return nil
	}
	err := eachSet(ctx, in.Reader, in.Scope, in.Namespace, func(set corev1alpha1.GenericObjectSet) error {
		// The UID excludes sets of an earlier deployment with the same name.
		if objectsets.OwnerOf(set) == in.key && objectsets.DeploymentOf(set) == in.deployment.GetUID() {
			in.sets = append(in.sets, set)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the revisions of %s: %w", in.key, err)
	}

	slices.SortFunc(in.sets, objectsets.ByRevision)
	for _, set := range in.sets {
		if !objectsets.Owns(set) {
			continue
		}
		if err := readStored(ctx, in.Reader, in.Scope, set, in.stored); err != nil {
			return err
		}
	}

	return nil
}

// decide compares the template with the newest revision, the only one that can be current.
func (in *input) decide() error {
	// A deletion has no template.
	if len(in.Template.Phases) == 0 {
		return nil
	}
	in.fresh, in.number = true, 1
	if len(in.sets) == 0 {
		return nil
	}

	newest := in.sets[len(in.sets)-1]
	spec := newest.ObjectSetSpec()
	in.number = spec.Revision + 1
	// An archived or deleted set cannot become current again, so the same template gets a new
	// revision.
	live := objectsets.Owns(newest) && spec.LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived && newest.GetDeletionTimestamp() == nil
	if !live {
		return nil
	}

	have, err := contentOf(spec.ObjectSetTemplateSpec, apinames.Default.Inherited(newest.GetLabels()), in.stored, in.Sensitive != nil)
	if err != nil {
		return err
	}
	want, err := contentOf(in.Template, apinames.Default.Inherited(in.labels()), objectsets.Stored{}, in.Sensitive != nil)
	if err != nil {
		return err
	}

	if have == want {
		in.fresh, in.number = false, spec.Revision
	}
	return nil
}

// contentOf is a digest of the content that a template rolls out, regardless of its slices.
func contentOf(spec corev1alpha1.ObjectSetTemplateSpec, labels map[string]string, stored objectsets.Stored, sealed bool) (objects.Digest, error) {
	spec = *spec.DeepCopy()
	stored.Inline(spec.Phases)
	for i := range spec.Phases {
		phase := &spec.Phases[i]
		if sealed {
			// Storing objects in Secrets only changes their order.
			slices.SortFunc(phase.Objects, func(a, b corev1alpha1.ObjectSetObject) int { return bytes.Compare(a.Object.Raw, b.Object.Raw) })
		}
		for j := range phase.Objects {
			// The API server sets this default, which the rendered template does not have.
			phase.Objects[j].CollisionProtection = cmp.Or(phase.Objects[j].CollisionProtection, corev1alpha1.CollisionProtectionPrevent)
		}
	}

	digest, err := revisions.SpecDigest(spec)
	return drift.Digest([]any{digest[:], labels}), err
}

// foreign returns the reason why the package may not write the deployment; empty if it may.
func (in *input) foreign() string {
	dep := in.deployment
	if dep == nil {
		return ""
	}
	kind := in.Scope.Kind("ObjectDeployment")
	controller := metav1.GetControllerOf(dep)
	switch {
	case dep.GetDeletionTimestamp() != nil:
		return fmt.Sprintf("%s %s is being torn down: wait until it is removed", kind, dep.GetName())
	case controller != nil && (controller.Name != in.Name || controller.Kind != in.Scope.Kind("Package")):
		return fmt.Sprintf("%s %s is controlled by %s %s: give this package another name",
			kind, dep.GetName(), controller.Kind, controller.Name)
	// A deployment without a package has no label to compare.
	case in.Alone:
		return ""
	case controller == nil && dep.GetLabels()[corev1alpha1.PackageInstanceLabel] != in.Name && dep.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation] == "":
		return fmt.Sprintf("%s %s exists and was not created for a package: delete or rename it, or give this package another name", kind, dep.GetName())
	}

	return ""
}

// objects are the deployment with the new template and its sets, as if none were paused, awaited an
// activation or were rejected. Unless the revision is claimed, other owners' sets are added.
func (in *input) objects(ctx context.Context, claimed bool) ([]client.Object, error) {
	dep := in.Scope.NewObjectDeployment()
	if in.deployment != nil {
		dep = in.deployment.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
	}
	dep.SetNamespace(in.Namespace)
	dep.SetName(in.Name)
	dep.SetUID(in.uid)
	dep.SetLabels(in.labels())
	spec := dep.ObjectDeploymentSpec()
	spec.Paused, spec.DriftPolicy = false, ""
	spec.RevisionActivationPolicy, spec.OnDeadline = "", ""
	dep.ObjectDeploymentStatus().Rejected = nil
	if in.ReportDrift {
		spec.DriftPolicy = corev1alpha1.DriftPolicyReport
	}
	spec.ArchivalPolicy = in.ArchivalPolicy
	if in.fresh {
		in.Template.DeepCopyInto(&spec.Template.Spec)
		dep.SetGeneration(dep.GetGeneration() + 1)
	}
	if in.deletes {
		now := metav1.NewTime(in.now)
		dep.SetDeletionTimestamp(&now)
		// The finalizer keeps the deployment in memory until its objects are removed.
		dep.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	}

	all := []client.Object{dep.(client.Object)}
	for _, set := range in.sets {
		set := set.DeepCopyObject().(corev1alpha1.GenericObjectSet)
		if spec := set.ObjectSetSpec(); spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStatePaused {
			spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateActive
		}
		all = append(all, set.(client.Object))
	}

	// Only the claim of a new revision compares it with other owners.
	if in.deletes || claimed {
		return all, nil
	}
	others, err := in.others(ctx)
	return append(all, others...), err
}

// others returns the sets of other owners, with the deployments they belong to. A scope that the
// user may not read becomes a warning.
func (in *input) others(ctx context.Context) ([]client.Object, error) {
	var all []client.Object
	deployments := map[objects.OwnerKey]bool{}
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		var namespace string
		if scope == corev1alpha1.ScopeNamespaced && !in.remote() {
			namespace = in.Namespace // other namespaces' packages cannot contain objects of this one
		}
		err := eachSet(ctx, in.Reader, scope, namespace, func(set corev1alpha1.GenericObjectSet) error {
			key := objectsets.OwnerOf(set)
			// Sets of another cluster cannot claim the same objects.
			if key == in.key || !objectsets.Owns(set) || (set.ObjectSetSpec().TargetRef != nil) != in.remote() {
				return nil
			}
			if strings.HasSuffix(key.Kind, "ObjectDeployment") && !deployments[key] {
				deployments[key] = true
				dep, err := in.otherDeployment(ctx, scope, key, objectsets.DeploymentOf(set))
				if err != nil {
					return err
				}
				all = append(all, dep)
			}

			all = append(all, set.(client.Object))
			stored := nothingStored()
			// Missing slices and ones that the user may not read only make the claims incomplete.
			if err := readStored(ctx, in.Reader, scope, set, stored); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
				return err
			}
			stored.Inline(set.ObjectSetSpec().Phases)
			return nil
		})
		if apierrors.IsForbidden(err) {
			in.warnings = append(in.warnings, fmt.Sprintf("you may not read %s objects, so other packages' claims are not known", scope.Kind("ObjectSet")))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the claims of other packages: %w", err)
		}
	}

	return all, nil
}

// eachSet visits the sets of a namespace, in pages.
func eachSet(ctx context.Context, reader client.Reader, scope corev1alpha1.Scope, namespace string, visit func(corev1alpha1.GenericObjectSet) error) error {
	return cluster.EachPage(ctx, reader, namespace, cluster.SetPage, scope.NewObjectSetList, func(page corev1alpha1.GenericObjectSetList) error {
		for _, set := range page.GenericObjectSets() {
			if err := visit(set); err != nil {
				return err
			}
		}
		return nil
	})
}

// nothingStored returns an empty Stored.
func nothingStored() objectsets.Stored {
	return objectsets.Stored{
		Slices: map[string][]corev1alpha1.ObjectSetObject{}, Secrets: map[string][]corev1alpha1.ObjectSetObject{},
	}
}

// readStored adds the objects of slices, which never change.
func readStored(
	ctx context.Context, reader client.Reader, scope corev1alpha1.Scope, set corev1alpha1.GenericObjectSet, into objectsets.Stored,
) error {
	for _, phase := range set.ObjectSetSpec().Phases {
		for _, name := range phase.Slices {
			// Revisions can share slices, so each is read once. Old sets can name invalid ones.
			if _, known := into.Slices[name]; known || !objectsets.Stores(name) {
				continue
			}

			slice := scope.NewObjectSlice()
			if err := reader.Get(ctx, client.ObjectKey{Namespace: set.GetNamespace(), Name: name}, slice); err != nil {
				return fmt.Errorf("read slice %s of %s: %w", name, set.GetName(), err)
			}
			into.Slices[name] = *slice.SliceObjects()
		}

		for _, name := range phase.SecretSlices {
			if _, known := into.Secrets[name]; known || !objectsets.Stores(name) {
				continue
			}
			secret := &corev1.Secret{}
			if err := reader.Get(ctx, client.ObjectKey{Namespace: cmp.Or(set.GetNamespace(), corev1alpha1.DefaultNamespace), Name: name}, secret); err != nil {
				return fmt.Errorf("read Secret %s of %s: %w", name, set.GetName(), err)
			}
			opened, err := objectslices.Open(secret)
			if err != nil {
				return err
			}
			into.Secrets[name] = opened
		}
	}

	return nil
}

// TemplateOf returns the template of a revision, with the objects of its slices.
func TemplateOf(
	ctx context.Context, reader client.Reader, scope corev1alpha1.Scope, set corev1alpha1.GenericObjectSet,
) (corev1alpha1.ObjectSetTemplateSpec, error) {
	spec := *set.ObjectSetSpec().ObjectSetTemplateSpec.DeepCopy()
	stored := nothingStored()
	err := readStored(ctx, reader, scope, set, stored)
	stored.Inline(spec.Phases)
	return spec, err
}
