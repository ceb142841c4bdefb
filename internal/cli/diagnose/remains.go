package diagnose

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

const (
	// remainsListed limits the listed objects of a kind, and remainsNamed limits the named ones.
	remainsListed = 500
	remainsNamed  = 3
	// kindsListed limits the listed kinds of a namespace.
	kindsListed = 5
	// controllersClimbed limits the controllers between an object and its pods.
	controllersClimbed = 5
)

// Remains describes the objects that block the deletion of Namespaces, CustomResourceDefinitions
// and up to objectsExamined workloads. It is empty for other objects.
func Remains(ctx context.Context, c client.Client, blocking []corev1alpha1.BlockingObject) ([]string, error) {
	e := explainer{client: c}
	messages, workloads := make([]string, len(blocking)), 0
	for i, b := range blocking {
		key := objects.Key{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}
		if strings.Contains(b.Message, objects.AwaitsDependents) && workloads < objectsExamined {
			workloads++
		} else if key.GroupKind() != crd && key.GroupKind() != namespace {
			continue
		}

		live, err := e.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if live == nil || live.GetDeletionTimestamp() == nil {
			continue
		}

		found, err := e.remains(ctx, key, live)
		if err != nil {
			return nil, err
		}
		var parts []string
		for _, f := range found {
			parts = append(parts, f.link.Object+": "+f.link.Message)
		}

		messages[i] = strings.Join(parts, "; ")
	}

	return messages, nil
}

// namespace and apiService are the kinds with special obstacles to a deletion.
var (
	namespace  = schema.GroupKind{Kind: "Namespace"}
	apiService = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// remains explains an object that is being deleted.
func (e *explainer) remains(ctx context.Context, key objects.Key, live *unstructured.Unstructured) ([]finding, error) {
	switch key.GroupKind() {
	case crd:
		group, _, _ := unstructured.NestedString(live.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(live.Object, "spec", "names", "kind")
		return e.left(ctx, key, schema.GroupKind{Group: group, Kind: kind}, "")
	case namespace:
		return e.namespaceRemains(ctx, key, live)
	}

	// The API server waits for dependents only after a foreground deletion.
	if slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return e.podsOf(ctx, key, live)
	}
	return nil, nil
}

// podsOf names the pods that belong to an object, through any chain of controllers.
func (e *explainer) podsOf(ctx context.Context, of objects.Key, live *unstructured.Unstructured) ([]finding, error) {
	pod := schema.GroupKind{Kind: "Pod"}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(pod.WithVersion("v1"))
	list.Kind += "List"
	selected := labels.Everything()
	if of.Group == "apps" || of.Group == "batch" { // the selector of a custom resource might have another meaning
		selected = selectorOf(live)
	}

	err := e.client.List(ctx, list, client.InNamespace(live.GetNamespace()), client.MatchingLabelsSelector{Selector: selected}, client.Limit(remainsListed))
	if err != nil {
		return nil, readable("pods", err)
	}
	known := map[types.UID]bool{live.GetUID(): true}
	mine := list.Items[:0]
	for i := range list.Items {
		is, err := e.belongs(ctx, list.Items[i].Namespace, metav1.GetControllerOf(&list.Items[i]), known, controllersClimbed)
		if err != nil {
			return nil, err
		}
		if is {
			mine = append(mine, list.Items[i])
		}
	}

	list.Items = mine
	list.RemainingItemCount = nil // it counts all pods
	if len(mine) == 0 {
		return nil, nil
	}

	return []finding{remainsOf(of, pod, list)}, nil
}

// belongs reports whether a controller is known to belong to an object, or is controlled by another
// one that does.
func (e *explainer) belongs(ctx context.Context, namespace string, ref *metav1.OwnerReference, known map[types.UID]bool, steps int) (bool, error) {
	if ref == nil || steps == 0 {
		return false, nil
	}
	if is, ok := known[ref.UID]; ok {
		return is, nil
	}
	// The controller can be of any kind, so only its metadata is read.
	controller := &metav1.PartialObjectMetadata{}
	controller.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, controller)
	// A missing right is remembered, so that it is not tried for each pod.
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		known[ref.UID] = false
		return false, readable(ref.Kind+" "+ref.Name, err)
	}

	known[ref.UID], err = e.belongs(ctx, namespace, metav1.GetControllerOf(controller), known, steps-1)
	return known[ref.UID], err
}

// remaining matches a kind in the condition NamespaceContentRemaining.
var remaining = regexp.MustCompile(`([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances`)

// namespaceRemains names the objects that are left in a Namespace. The namespace controller reports
// their kinds in a condition.
func (e *explainer) namespaceRemains(ctx context.Context, key objects.Key, live *unstructured.Unstructured) ([]finding, error) {
	var found []finding
	if message := trueCondition(live, "NamespaceDeletionDiscoveryFailure"); message != "" {
		services, err := e.apiServices(ctx)
		if err != nil {
			return nil, err
		}

		// The objects of these APIs in a namespace are unknown.
		for i := range services {
			service := &services[i]
			c := conditionOf(service, "Available")
			if c.Type == "" || c.Status == corev1.ConditionTrue || len(found) == remainsNamed {
				continue
			}
			message := strings.TrimSpace(c.Reason + said(c.Message))
			name := "APIService " + service.GetName()
			found = append(found, finding{
				link: Link{Object: name, State: "not available", Message: message},
				cause: cause{
					weight: weightCertain, reason: ReasonDeleting, object: objectdiff.Short(key),
					text:   objectdiff.Short(key) + " is being deleted, and its remaining objects are not known, because " + name + " does not answer" + said(message),
					remedy: "Repair its server, or delete it if nothing uses it: kubectl delete apiservice " + service.GetName() + ".",
				},
			})
		}
	}

	kinds := remaining.FindAllStringSubmatch(trueCondition(live, "NamespaceContentRemaining"), kindsListed)
	for _, m := range kinds {
		gvk, err := e.client.RESTMapper().KindFor(schema.GroupVersionResource{Group: m[2], Resource: m[1]})
		if err != nil {
			continue // the condition names it
		}
		f, err := e.left(ctx, key, gvk.GroupKind(), live.GetName())
		if err != nil {
			return nil, err
		}
		found = append(found, f...)
	}

	return found, nil
}

// trueCondition returns the message of a condition that is True.
func trueCondition(live *unstructured.Unstructured, typ string) string {
	if c := conditionOf(live, typ); c.Status == corev1.ConditionTrue {
		return c.Message
	}
	return ""
}

// left names the remaining objects of a kind. A kind that is no longer served has none.
func (e *explainer) left(ctx context.Context, of objects.Key, kind schema.GroupKind, namespace string) ([]finding, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: e.version(objects.Key{Group: kind.Group, Kind: kind.Kind}), Kind: kind.Kind + "List"})
	err := e.client.List(ctx, list, client.InNamespace(namespace), client.Limit(remainsListed))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err = readable(kind.Kind, err); err != nil || len(list.Items) == 0 {
		return nil, err
	}

	return []finding{remainsOf(of, kind, list)}, nil
}

// remainsOf describes remaining objects. The ones with finalizers come first, because they are the
// obstacle.
func remainsOf(of objects.Key, kind schema.GroupKind, list *metav1.PartialObjectMetadataList) finding {
	total := len(list.Items)
	if more := list.GetRemainingItemCount(); more != nil {
		total += int(*more)
	}
	items := slices.Clone(list.Items)
	slices.SortStableFunc(items, func(a, b metav1.PartialObjectMetadata) int { return len(b.Finalizers) - len(a.Finalizers) })
	var names []string
	for i := range items[:min(len(items), remainsNamed)] {
		o := &items[i]
		text := objects.Key{Namespace: o.Namespace, Name: o.Name}.NamespacedName()
		if len(o.Finalizers) > 0 {
			text += " (finalizer " + strings.Join(o.Finalizers, ", ") + ")"
		}
		names = append(names, text)
	}

	if more := total - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	f := finding{link: Link{Object: terminal.Count(total, kind.Kind) + " left", Message: strings.Join(names, ", ")}}
	f.cause = cause{
		weight: weightCertain, reason: ReasonDeleting, object: objectdiff.Short(of),
		text: fmt.Sprintf("%s is being deleted and waits for %s: %s", objectdiff.Short(of), terminal.Count(total, kind.Kind), strings.Join(names, ", ")),
		// Without finalizers, the garbage collector only needs time.
		remedy: "They are being removed; there is nothing to do.",
	}

	if first := &items[0]; len(first.Finalizers) > 0 {
		where := ""
		if first.Namespace != "" {
			where = " -n " + first.Namespace
		}
		f.cause.remedy = "The controller that set a finalizer removes it when its work is done: is it running? If it no longer exists, and the objects that it would clean up can stay: " +
			fmt.Sprintf(`kubectl%s patch %s %s --type=merge -p '{"metadata":{"finalizers":null}}'.`, where, schema.GroupKind{Group: kind.Group, Kind: strings.ToLower(kind.Kind)}, first.Name)
	}

	return f
}

// apiServices lists all APIServices; none if the user may not read them.
func (e *explainer) apiServices(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: apiService.Group, Version: "v1", Kind: apiService.Kind + "List"})
	err := e.client.List(ctx, list, client.Limit(remainsListed))
	return list.Items, readable("APIServices", err)
}
