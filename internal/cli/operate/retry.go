package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// retryCommand is kubectl package retry.
type retryCommand struct {
	command.Command
	job bool
}

// newRetry returns the command retry.
func newRetry(on command.Command) *cobra.Command {
	c := &retryCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:        "retry NAME|job/NAME",
		SuggestFor: []string{"kick"},
		Short:      "Retry the failed steps of a package at once, or run a finished Job of it again",
		Long: `Make the engine retry the failed steps of a package at once, instead of after its back-off: an image that
could not be pulled, a write that was refused, an object of another owner. If the package has an
interval, its tag is looked up. Then watch the rollout. NAME can be package/NAME or clusterpackage/NAME.

With job/NAME, run a finished Job of a package once more: it is deleted if it still exists, and its record is
removed from the status of its deployment, so that the engine creates it again. A running Job is left alone.
It needs the rights to delete Jobs and to patch the status of ObjectDeployments.`,
		Args: command.Takes("NAME", "[NAME]"),
	}, c.name, c.run)
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until the package is available")

	return cmd
}

// name parses a package, or job/NAME for a Job.
func (c *retryCommand) name(args []string) (cluster.Name, error) {
	parts := args
	if len(args) == 1 {
		parts = strings.SplitN(args[0], "/", 2)
	}
	c.job = len(parts) == 2 && parts[1] != "" && !strings.Contains(parts[1], "/") &&
		slices.Contains([]string{"job", "jobs", "job.batch", "jobs.batch"}, strings.ToLower(parts[0]))
	if c.job {
		return cluster.Name{Name: parts[1]}, nil
	}
	return command.PackageName(args)
}

// run requests a retry of a package, or runs a Job again.
func (c *retryCommand) run(ctx context.Context, n cluster.Name) error {
	if c.job {
		return c.runJob(ctx, n)
	}
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}

	if pkg.PackageSpec().Paused && pkg.GetDeletionTimestamp() == nil {
		return fmt.Errorf("%s is paused, so it is not retried. To resume it: kubectl package unpause %s", target, target.Flags())
	}
	done := desired.Applied{Pkg: pkg, Before: pkg.DeepCopyObject().(corev1alpha1.GenericPackage)}
	if done.Retry, err = desired.RequestRetry(ctx, cl, target, pkg); err != nil {
		return err
	}

	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" is being retried"))
	// A package that is being deleted does not become available.
	if !c.Wait || pkg.GetDeletionTimestamp() != nil {
		return nil
	}
	return done.Follow(ctx, &c.Command, cl, target)
}

// rerun runs a Job again.
type rerun struct {
	*cluster.Cluster
	// kinds is a client for the cluster with the Job.
	kinds client.Client
	key   types.NamespacedName
	// before is the UID of the former Job.
	before types.UID
}

// String names the Job in messages.
func (r *rerun) String() string { return "job " + r.key.String() }

// runJob deletes a finished Job with its record, and waits until the engine has created it again.
func (c *retryCommand) runJob(ctx context.Context, n cluster.Name) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	r := &rerun{Cluster: cl, key: types.NamespacedName{Namespace: cl.Namespace, Name: n.Name}}
	dep, err := r.deployment(ctx)
	if err != nil {
		return err
	}
	// A paused package would not create it.
	if dep.ObjectDeploymentSpec().Paused {
		return fmt.Errorf("%s: its package %s is paused, so its objects are not created. To resume it: kubectl package unpause", r, dep.GetName())
	}
	if r.kinds, err = cl.AnyKindAt(ctx, dep.GetNamespace(), dep.ObjectDeploymentSpec().Template.Spec.TargetRef); err != nil {
		return err
	}

	r.key.Namespace = r.namespaceIn(dep)
	r.before = dep.ObjectDeploymentStatus().Jobs[r.recorded(dep)].UID
	if err := r.remove(ctx, dep); err != nil {
		return err
	}

	switch err := c.Poll(ctx, func(ctx context.Context) (bool, error) { return r.restarted(ctx, dep) }); {
	case errors.Is(err, command.ErrTimeout):
		return fmt.Errorf("%s was not created again within %s: see kubectl package explain, and check whether lockstep-manager runs", r, c.Timeout)
	case err != nil:
		return err
	}

	fmt.Fprintln(c.Streams.Out, terminal.Line(r.String()+" runs again"))
	return nil
}

// remove deletes the Job if it still exists.
func (r *rerun) remove(ctx context.Context, dep corev1alpha1.GenericObjectDeployment) error {
	job, err := r.read(ctx)
	if err != nil || job == nil {
		return err
	}
	if owner := apinames.Default.ControllerOf(job); owner == nil || owner.UID != dep.GetUID() {
		return fmt.Errorf("%s belongs to another owner than %s", r, dep.GetName())
	}
	// A running Job has side effects, so only the user decides to interrupt it.
	if objects.OutcomeOf(job.Object) == "" {
		return fmt.Errorf("%s has not finished. Delete it to start it again: kubectl delete job -n %s %s", r, r.key.Namespace, r.key.Name)
	}

	r.before = job.GetUID()
	err = r.kinds.Delete(ctx, job, client.Preconditions{UID: ptr.To(r.before)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return r.Explain("cannot delete "+r.String(), client.IgnoreNotFound(err))
}

// read returns the Job; nil if it does not exist.
func (r *rerun) read(ctx context.Context) (*unstructured.Unstructured, error) {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	err := r.kinds.Get(ctx, r.key, job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return job, r.Explain("cannot read "+r.String(), err)
}

// namespaceIn returns the namespace of a deployment's Job.
func (r *rerun) namespaceIn(dep corev1alpha1.GenericObjectDeployment) string {
	if dep.GetNamespace() == "" {
		return r.key.Namespace
	}
	return dep.ObjectDeploymentSpec().Template.Spec.TargetRef.NamespaceOf(r.key.Namespace)
}

// deployment finds the deployment that has a record of the finished Job.
func (r *rerun) deployment(ctx context.Context) (found corev1alpha1.GenericObjectDeployment, err error) {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewObjectDeploymentList()
		namespace := ""
		if scope == corev1alpha1.ScopeNamespaced {
			namespace = r.key.Namespace
		}
		err := r.List(ctx, list, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) && scope == corev1alpha1.ScopeCluster {
			continue // rights in one namespace do not extend to cluster packages
		}
		if err != nil {
			return nil, r.Explain("cannot read deployments", err)
		}

		for _, dep := range list.GenericObjectDeployments() {
			switch {
			case r.recorded(dep) < 0:
			// Their objects are in different clusters.
			case found != nil:
				return nil, fmt.Errorf("%s belongs to %s and to %s: delete the right one, and its package creates it again", r, found.GetName(), dep.GetName())
			default:
				found = dep
			}
		}
	}

	if found == nil {
		err = fmt.Errorf("no package has a record of a finished %s", r)
	}
	return found, err
}

// recorded returns the index of the Job's record in the status of a deployment; -1 if there is
// none.
func (r *rerun) recorded(dep corev1alpha1.GenericObjectDeployment) int {
	namespace := r.namespaceIn(dep)
	return slices.IndexFunc(dep.ObjectDeploymentStatus().Jobs, func(j corev1alpha1.JobRecord) bool {
		return j.Namespace == namespace && j.Name == r.key.Name
	})
}

// restarted reports whether a new Job exists. Until then, it removes the record, because events of
// the former Job might restore it.
func (r *rerun) restarted(ctx context.Context, dep corev1alpha1.GenericObjectDeployment) (bool, error) {
	job, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	if job != nil {
		return job.GetUID() != r.before, nil
	}

	if err := r.Get(ctx, client.ObjectKeyFromObject(dep), dep); err != nil {
		return false, r.Explain("cannot read the deployment "+dep.GetName(), err)
	}
	at := r.recorded(dep)
	if at < 0 {
		return false, nil
	}

	record := dep.ObjectDeploymentStatus().Jobs[at]
	if record.UID != "" && record.UID != r.before {
		return true, nil // it was deleted again
	}
	path := fmt.Sprintf("/status/jobs/%d", at)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": dep.GetUID()},
		// The index is only valid as long as the list does not change.
		{"op": "test", "path": path, "value": record},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return false, err
	}

	err = r.Status().Patch(ctx, dep, client.RawPatch(types.JSONPatchType, patch))
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return false, nil // it has changed, so read it again
	}
	return false, r.Explain("cannot remove the record of "+r.String()+" from the status of its deployment", err)
}
