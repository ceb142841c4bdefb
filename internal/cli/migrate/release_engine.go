package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/engines"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// releaseEngineCommand is kubectl package release-engine.
type releaseEngineCommand struct{ engineCommand }

// newReleaseEngine returns the command release-engine.
func newReleaseEngine(on command.Command) *cobra.Command {
	c := &releaseEngineCommand{engineCommand{Command: on}}
	return c.complete(&cobra.Command{
		Use:   "release-engine",
		Short: "Give all packages of the cluster back to Package Operator (single objects: release)",
		Long: `Prepare all packages for Package Operator to take them back: the way back from adopt-engine. The manager is
stopped, then owner references, labels and finalizers change. No object is deleted, recreated or restarted.
The plan comes first, with the fields that Package Operator does not know. Packages in other clusters or with
sensitive values are refused.

The command can be repeated, also after an interrupt. Afterwards install Package Operator, and keep the
CustomResourceDefinitions: deleting them deletes every package.`,
		Example: `  kubectl package release-engine --dry-run
  kubectl package release-engine --yes`,
	}, c.run)
}

// run shows the plan, and runs the steps after a confirmation.
func (c *releaseEngineCommand) run(ctx context.Context) error {
	steps, findings, err := c.managerSteps(ctx)
	if err != nil {
		return err
	}
	losses, err := c.losses(ctx)
	if err != nil {
		return err
	}

	findings, refused := append(findings, losses...), 0
	err = c.rollouts(ctx, func(r *engines.Rollout) error {
		why := r.Refusals()
		for _, text := range why {
			findings = append(findings, engineFinding{deploymentText(r.Deployment), text})
		}
		if len(why) > 0 {
			refused++
		}
		patches, err := r.Release()
		key := client.ObjectKeyFromObject(r.Deployment)
		steps = append(steps, engineStep{
			what: "give back " + deploymentText(r.Deployment) + ", " + terminal.Count(len(r.Live), "object"), done: len(patches) == 0,
			do: func(ctx context.Context) error { return c.release(ctx, corev1alpha1.ScopeOf(key.Namespace), key) },
		})
		return err
	})
	if err != nil {
		return err
	}

	if err := c.show("Packages to give back", findings, steps); err != nil {
		return err
	}
	if err := c.others(ctx); err != nil {
		return err
	}
	if refused > 0 {
		return fmt.Errorf("nothing was changed: %s cannot be given back", terminal.Count(refused, "deployment"))
	}

	done, err := c.perform(ctx, "Give the packages back to Package Operator?", steps)
	if done && err == nil {
		fmt.Fprintln(c.Streams.Out, "Package Operator can be installed now. Keep the CustomResourceDefinitions.")
	}
	return err
}

// losses returns the fields of packages that Package Operator does not know.
func (c *releaseEngineCommand) losses(ctx context.Context) (findings []engineFinding, err error) {
	packages, hidden, err := c.cluster.Packages(ctx)
	if err == nil && len(hidden) > 0 {
		// A package that the user may not read could lose fields without a warning.
		err = fmt.Errorf("you may not read %s", strings.Join(hidden, ", "))
	}
	if err != nil {
		return nil, err
	}

	for _, pkg := range packages {
		losses, err := engines.Losses(pkg)
		if err != nil {
			return nil, err
		}
		for _, text := range losses {
			findings = append(findings, engineFinding{progress.TargetOf(pkg).String(), text})
		}
	}

	return findings, nil
}

// deploymentText names a deployment in a finding.
func deploymentText(dep corev1alpha1.GenericObjectDeployment) string {
	return objects.Key{Kind: corev1alpha1.ScopeOf(dep.GetNamespace()).Kind("ObjectDeployment"), Namespace: dep.GetNamespace(), Name: dep.GetName()}.String()
}

// managerSteps returns the steps that stop the manager.
func (c *releaseEngineCommand) managerSteps(ctx context.Context) (steps []engineStep, findings []engineFinding, err error) {
	holder, err := c.leader(ctx)
	if err != nil {
		return nil, nil, err
	}
	dep, err := c.manager(ctx, engineDeployment)
	if err != nil {
		return nil, nil, err
	}

	findings = []engineFinding{leaseFinding(holder)}
	if dep != nil {
		findings = append(findings, engineFinding{"Deployment " + dep.Name, terminal.Count(int(ptr.Deref(dep.Spec.Replicas, 1)), "replica")})
		steps = append(steps, c.stopStep(dep))
	}
	return append(steps, c.leaseStep(holder)), findings, nil
}

// engineDeployment is the name of our manager in config.
const engineDeployment = "lockstep-manager"

// release patches the current state of a deployment and of all its objects, because the manager
// might have written until it stopped.
func (c *releaseEngineCommand) release(ctx context.Context, scope corev1alpha1.Scope, key client.ObjectKey) error {
	// A manager that leads again would write the objects that are given back.
	if holder, err := c.leader(ctx); err != nil || holder != "" {
		return cmp.Or(err, fmt.Errorf("%s holds the Lease again: stop it", holder))
	}
	dep := scope.NewObjectDeployment()
	if err := c.cluster.Get(ctx, key, dep); err != nil {
		return c.cluster.Explain("cannot read "+key.String(), client.IgnoreNotFound(err))
	}

	r, err := c.rollout(ctx, dep)
	if err != nil {
		return err
	}
	patches, err := r.Release()
	if err != nil {
		return err
	}

	for _, p := range patches {
		// Both engines treat fields that this manager updated as their own.
		if err := c.patch(ctx, p, corev1alpha1.FieldManager); err != nil {
			return err
		}
	}

	return nil
}

// rollouts visits the deployments of both scopes.
func (c *releaseEngineCommand) rollouts(ctx context.Context, visit func(*engines.Rollout) error) error {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		deployments, err := c.cluster.Deployments(ctx, scope)
		if err != nil {
			return err
		}

		for _, dep := range deployments {
			if scope == corev1alpha1.ScopeCluster && dep.GetName() == corev1alpha1.EnginePackage {
				continue // it is Package Operator's own
			}
			r, err := c.rollout(ctx, dep)
			if err != nil {
				return err
			}
			if err := visit(r); err != nil {
				return err
			}
		}
	}

	return nil
}

// rollout reads everything that belongs to a deployment.
func (c *releaseEngineCommand) rollout(ctx context.Context, dep corev1alpha1.GenericObjectDeployment) (*engines.Rollout, error) {
	r := &engines.Rollout{Deployment: dep, Objects: map[types.UID][]objects.Key{}}
	scope, in := corev1alpha1.ScopeOf(dep.GetNamespace()), client.InNamespace(dep.GetNamespace())
	sets, found := scope.NewObjectSetList(), scope.NewObjectSliceList()
	doing := "cannot read the objects of " + deploymentText(dep)
	err := c.cluster.List(ctx, sets, in)
	if err == nil {
		err = c.cluster.List(ctx, found, in, client.MatchingLabels{corev1alpha1.SliceOwnerLabel: dep.GetName()})
	}

	if err != nil {
		return nil, c.cluster.Explain(doing, err)
	}

	r.Slices = found.GenericObjectSlices()
	var wanted []objectdiff.Object
	// Revisions belong to a deployment by its UID, as labels can be shared.
	for _, set := range sets.GenericObjectSets() {
		if objectsets.DeploymentOf(set) != dep.GetUID() {
			continue
		}

		r.Sets = append(r.Sets, set)
		if !engines.Owns(set) {
			continue
		}
		all, err := cluster.ReadObjects(ctx, c.cluster, set)
		if err != nil {
			return nil, c.cluster.Explain(doing, err)
		}

		for _, o := range all {
			// The objects of a class belong to the agent, so they stay as they are.
			classed := func(p corev1alpha1.ObjectSetTemplatePhase) bool { return p.Name == o.Phase && p.Class != "" }
			if !slices.ContainsFunc(set.ObjectSetSpec().Phases, classed) {
				r.Objects[set.GetUID()], wanted = append(r.Objects[set.GetUID()], o.Key), append(wanted, o)
			}
		}
	}

	slices.SortFunc(r.Sets, objectsets.ByRevision)
	// Objects in another cluster are refused anyway, and need not be read.
	if dep.ObjectDeploymentSpec().Template.Spec.TargetRef != nil {
		return r, nil
	}

	live, unreadable, err := c.cluster.Live(ctx, wanted)
	for kind, why := range unreadable {
		err = errors.Join(err, fmt.Errorf("%s: %s", kind, why))
	}

	r.Live = live
	return r, c.cluster.Explain(doing, err)
}
