package diagnose

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// refused reports whether the message of a blocking object is about a refused write.
func refused(key objects.Key, object, message string) (cause, bool) {
	r, is := refusals.Of(key, object, message)
	return certain(short(key), r), is
}

func certain(object string, r refusals.Refusal) cause {
	return cause{weight: weightCertain, reason: r.Reason, object: object, text: r.Text, remedy: r.Remedy}
}

func short(key objects.Key) string {
	key.Group = ""
	return key.String()
}

// inNamespace replaces NAMESPACE in the remedy.
func (c cause) inNamespace(namespace string) cause {
	if namespace == "" {
		namespace = "NAMESPACE"
	}
	c.remedy = strings.ReplaceAll(c.remedy, "NAMESPACE", namespace)
	return c
}

const webhooksExamined = 500

// obstacle finds the package's own policy or webhook that denied a write, and that a later phase
// removes or changes.
func (e *explainer) obstacle(ctx context.Context, message string) (objects.Key, bool, error) {
	denial, denied := apply.DeniedBy(message)
	if !denied || e.deployment == nil || e.client == nil {
		return objects.Key{}, false, nil
	}
	for _, kind := range denial.Kinds() {
		key := objects.Key{Group: "admissionregistration.k8s.io", Kind: kind}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: key.Group, Version: e.version(key), Kind: kind + "List"})
		own := client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}
		err := e.client.List(ctx, list, own, client.Limit(webhooksExamined))
		if err = readable(kind, err); err != nil && !meta.IsNoMatchError(err) {
			return key, false, err
		}
		for i := range list.Items {
			live := &list.Items[i]
			key.Name = live.GetName()
			ref := apinames.Default.ControllerOf(live)
			if ref == nil || ref.UID != e.deployment.GetUID() || !denial.Is(key, live) {
				continue
			}
			stays, err := e.desires(ctx, key, live)
			return key, !stays, err
		}
	}
	return objects.Key{}, false, nil
}

// desires reports whether the newest revision has an object as it is.
func (e *explainer) desires(ctx context.Context, key objects.Key, live *unstructured.Unstructured) (bool, error) {
	if e.set == nil {
		return true, nil
	}
	all, err := cluster.ReadObjects(ctx, e.home, e.set)
	if err != nil {
		return true, readable("the newest revision", err)
	}
	for _, o := range all {
		if o.Key.Kind == key.Kind && o.Key.Name == key.Name {
			delete(o.Value, "metadata")
			return drift.Matches(apinames.Default, o.Value, live.Object, nil), nil
		}
	}
	return false, nil
}
