package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// Deletion plans the deletion of a package from its revisions. The request needs no template.
func Deletion(ctx context.Context, c *Cluster, r Request) (*Plan, error) {
	in, err := c.gather(ctx, r)
	if err != nil {
		return nil, err
	}
	in.deletes, in.fresh = true, false
	s, err := in.simulation(ctx)
	if err != nil {
		return nil, err
	}

	plan := &Plan{Kind: r.Scope.Kind("Package"), Namespace: r.Namespace, Name: r.Name, Deletes: true}
	if len(in.sets) > 0 {
		// The newest set has the revision that is deleted.
		plan.Revision = in.sets[len(in.sets)-1].ObjectSetSpec().Revision
	}
	// Without a deployment, no object has to be deleted and there is nothing to simulate.
	if in.deployment != nil {
		if err := s.run(ctx); err != nil {
			return nil, err
		}
	}

	plan.Cleanup = s.cleanup(nil)
	if plan.Losses, err = s.losses(ctx); err != nil {
		return nil, err
	}
	if plan.Stranded, err = s.stranded(ctx); err != nil {
		return nil, err
	}

	plan.Warnings = in.warnings
	plan.finish()
	return plan, nil
}

// Harm returns the damage to others when a package is deleted: Plan.Stranded, and other owners'
// objects that are deleted along with its Namespaces. A package without a Namespace and without a
// definition that might hang needs no simulation.
func Harm(ctx context.Context, c *Cluster, r Request) ([]DataLoss, error) {
	in, err := c.gather(ctx, r)
	if err != nil || len(in.sets) == 0 {
		return nil, err
	}
	rev := objectsets.Load(in.sets[len(in.sets)-1], in.stored, objects.Owner{Names: apinames.Default}, in.namespaced)

	harms, last := false, lastWorkload(rev)
	// Only a Namespace deletes objects of others. Only a definition that is deleted before a
	// workload can hang.
	for i := range rev.Phases {
		harms = harms || slices.ContainsFunc(rev.Phases[i].Objects, func(d *objects.Desired) bool {
			return d.Key.GroupKind() == namespaceKind || i <= last && d.Key.GroupKind() == definitionKind
		})
	}

	if !harms {
		return nil, nil
	}
	plan, err := Deletion(ctx, c, r)
	if err != nil {
		return nil, err
	}

	return append(slices.DeleteFunc(plan.Losses, func(l DataLoss) bool { return !l.others }), plan.Stranded...), nil
}

// workloads are the kinds whose Pods can be the controller of a custom resource.
var workloads = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, statefulSetKind, {Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "ReplicaSet"}, {Kind: "Pod"},
}

// stranded returns definitions whose resources have finalizers of a controller that might be
// deleted first.
func (s *simulation) stranded(ctx context.Context) ([]DataLoss, error) {
	revisions := s.installed
	if len(revisions) == 0 {
		return nil, nil
	}
	// The newest revision decides, because its phases are the ones that the engine tears down.
	rev := revisions[len(revisions)-1]
	last := lastWorkload(rev)
	var found []DataLoss
	for i := range min(last+1, len(rev.Phases)) {
		for _, d := range rev.Phases[i].Objects {
			o := s.objects[d.Key]
			if d.Key.GroupKind() != definitionKind || o.live == nil || o.released {
				continue
			}
			held, err := s.held(ctx, rev, definitionOf(o.live))
			if err != nil {
				return nil, err
			}
			if held != "" {
				found = append(found, DataLoss{Object: objectdiff.Short(d.Key), Message: held})
			}
		}
	}

	return found, nil
}

// lastWorkload is the last phase with a workload; -1 for none.
func lastWorkload(rev *engine.Revision) int {
	for i := len(rev.Phases) - 1; i >= 0; i-- {
		if hasWorkload(rev.Phases[i]) {
			return i
		}
	}
	return -1
}

// hasWorkload reports whether a phase has an object that runs Pods.
func hasWorkload(ph phases.Phase) bool {
	return slices.ContainsFunc(ph.Objects, func(d *objects.Desired) bool { return slices.Contains(workloads, d.Key.GroupKind()) })
}

const (
	// resourcesListed and resourcesNamed limit the custom resources of a kind.
	resourcesListed = 500
	resourcesNamed  = 3
)

// held names the resources with finalizers that no workload of the package outlives.
func (s *simulation) held(ctx context.Context, rev *engine.Revision, definition *crdType) (string, error) {
	list, served, err := s.resources(ctx, definition, resourcesListed)
	// A warning must not require more rights than the plan.
	if !served || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("list the resources of %s: %w", definition.Name, err)
	}

	var names []string
	n, kind := 0, definedKind(definition)
	for i := range list.Items {
		item := &list.Items[i]
		key := objects.Key{Group: kind.Group, Kind: kind.Kind, Namespace: item.Namespace, Name: item.Name}
		// The garbage collector needs no controller of the package.
		finalizers := slices.DeleteFunc(objectsets.ForeignFinalizers(item), func(f string) bool {
			return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
		})
		d, ph := rev.Find(key)
		// An object of the package is deleted before the workloads of later phases, such as its controller.
		if len(finalizers) == 0 || d != nil && slices.ContainsFunc(rev.Phases[:ph], hasWorkload) {
			continue
		}
		if n++; n <= resourcesNamed {
			names = append(names, fmt.Sprintf("%s (finalizer %s)", objectdiff.Short(key), strings.Join(finalizers, ", ")))
		}
	}

	if n == 0 {
		return "", nil
	}
	if n > len(names) {
		names = append(names, fmt.Sprintf("and %d more", n-len(names)))
	}

	return "waits for " + strings.Join(names, ", ") + ", whose controller might belong to this package and be deleted first: delete them before, and wait until they are removed", nil
}
