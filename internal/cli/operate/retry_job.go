package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// rerunInterval is the time between two reads of a Job.
const rerunInterval = 200 * time.Millisecond

// jobName parses job/NAME.
func jobName(args []string) (cluster.Name, bool) {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	if len(args) != 2 || args[1] == "" || strings.Contains(args[1], "/") {
		return cluster.Name{}, false
	}
	return cluster.Name{Name: args[1]}, slices.Contains([]string{"job", "jobs", "job.batch", "jobs.batch"}, strings.ToLower(args[0]))
}

// rerun runs a Job again.
type rerun struct {
	*cluster.Cluster
	kinds client.Client
	key   types.NamespacedName
	// before is the UID of the former Job; empty if its record has none.
	before types.UID
}

// String names the Job in messages.
func (r *rerun) String() string { return "job " + r.key.String() }

// runJob deletes a finished Job with its record, and waits until the engine has created it again.
// The checks come first, because a paused package would not create it.
func (c *retryCommand) runJob(ctx context.Context, n cluster.Name) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	kinds, err := cl.AnyKind()
	if err != nil {
		return err
	}

	r := &rerun{Cluster: cl, kinds: kinds, key: types.NamespacedName{Namespace: cl.Namespace, Name: n.Name}}
	job, err := r.read(ctx)
	if err != nil {
		return err
	}
	dep, err := r.deployment(ctx, job)
	if err != nil {
		return err
	}

	if ref := dep.ObjectDeploymentSpec().Template.Spec.TargetRef; ref != nil {
		if job, err = r.there(ctx, dep, ref); err != nil {
			return err
		}
	}

	if dep.ObjectDeploymentSpec().Paused {
		return fmt.Errorf("%s: its package %s is paused, so its objects are not created. To resume it: kubectl package unpause", r, dep.GetName())
	}
	if job != nil {
		// A running Job has side effects, so only the user decides to interrupt it.
		if objects.OutcomeOf(job.Object) == "" {
			return fmt.Errorf("%s has not finished. Delete it to start it again: kubectl delete job -n %s %s", r, r.key.Namespace, r.key.Name)
		}
		r.before = job.GetUID()
		err := r.kinds.Delete(ctx, job, client.Preconditions{UID: ptr.To(r.before)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return cl.Explain("cannot delete "+r.String(), err)
		}
	}

	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, command.ErrTimeout)
	defer cancel()
	switch err := wait.PollUntilContextCancel(ctx, rerunInterval, true, func(ctx context.Context) (bool, error) { return r.restarted(ctx, dep) }); {
	case err != nil && errors.Is(context.Cause(ctx), command.ErrTimeout):
		return fmt.Errorf("%s was not created again within %s: see kubectl package explain, and check whether lockstep-manager runs", r, c.Timeout)
	case err != nil:
		return err
	}

	fmt.Fprintln(c.Streams.Out, terminal.Line(r.String()+" runs again"))
	return nil
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

// there returns the Job of a deployment whose objects are in another cluster.
func (r *rerun) there(ctx context.Context, dep corev1alpha1.GenericObjectDeployment, ref *corev1alpha1.TargetReference) (*unstructured.Unstructured, error) {
	var err error
	if r.kinds, err = r.AnyKindAt(ctx, dep.GetNamespace(), ref); err != nil {
		return nil, err
	}
	r.key.Namespace = r.namespaceIn(dep)
	job, err := r.read(ctx)
	if err != nil || job == nil {
		return nil, err
	}

	if owner := apinames.Default.ControllerOf(job); owner == nil || owner.UID != dep.GetUID() {
		return nil, fmt.Errorf("%s in the cluster of Secret %s belongs to another owner than %s", r, ref.KubeconfigSecretRef.Name, dep.GetName())
	}
	return job, nil
}

// deployment finds the deployment that controls the Job or has a record of it.
func (r *rerun) deployment(ctx context.Context, job *unstructured.Unstructured) (corev1alpha1.GenericObjectDeployment, error) {
	var found corev1alpha1.GenericObjectDeployment
	var owner types.UID
	if job != nil {
		if ref := metav1.GetControllerOf(job); ref != nil {
			owner = ref.UID
		}
	}

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
			at := r.recorded(dep)
			// A deployment with a target can have a record of a Job in the other cluster, even if a
			// Job of that name is here.
			elsewhere := at >= 0 && (job == nil || inTarget(dep))
			switch {
			case dep.GetUID() != owner && !elsewhere, found != nil && inTarget(found) == inTarget(dep):
				continue
			case found != nil:
				return nil, fmt.Errorf("%s belongs to %s and to %s, in different clusters: delete the right one, and its package creates it again", r, found.GetName(), dep.GetName())
			}
			if found = dep; elsewhere {
				r.before = dep.ObjectDeploymentStatus().Jobs[at].UID
			}
		}
	}

	switch {
	case found != nil:
		return found, nil
	case job != nil:
		return nil, fmt.Errorf("%s does not belong to a package", r)
	}

	return nil, fmt.Errorf("there is no %s, and no package has a record of it", r)
}

// inTarget reports whether the objects of a deployment are in another cluster.
func inTarget(dep corev1alpha1.GenericObjectDeployment) bool {
	return dep.ObjectDeploymentSpec().Template.Spec.TargetRef != nil
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
