package kickstart

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader/violation"
)

// object is one object of the input.
type object struct {
	gvk schema.GroupVersionKind

	// value is the object as JSON values and expressions.
	value map[string]any
	// at is its place in the input.
	at violation.Violation

	phase string

	// fileName replaces the object's name in the name of its file.
	fileName string
	// hook is nil for an ordinary object.
	hook *hook
}

// expression is a template expression in place of a value.
type expression string

// name returns the object's name; empty if it has none.
func (o *object) name() string { return fields.Text(o.value, "metadata", "name") }

// namespace returns the object's namespace in the input, before an expression replaces it.
func (o *object) namespace() string { return fields.Text(o.value, "metadata", "namespace") }

// Content implements gates.Object.
func (o *object) Content() map[string]any { return o.value }

// Home implements gates.Object.
func (o *object) Home() string { return o.namespace() }

// kind returns the object's group and kind.
func (o *object) kind() schema.GroupKind { return o.gvk.GroupKind() }

// identity is unique in a package.
func (o *object) identity() string {
	return o.kind().String() + " " + o.namespace() + "/" + o.name()
}

// is reports whether the object is of a kind, in any version.
func (o *object) is(group, kind string) bool { return o.gvk.Group == group && o.gvk.Kind == kind }

// String names the object in messages.
func (o *object) String() string {
	if ns := o.namespace(); ns != "" {
		return fmt.Sprintf("%s %s/%s", o.gvk.Kind, ns, o.name())
	}
	return o.gvk.Kind + " " + o.name()
}

// child returns the map at a path, and creates it if it is missing.
func child(v map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := v[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			v[key] = next
		}
		v = next
	}
	return v
}

// annotation returns an annotation, and whether it exists. A value that is not a text is formatted,
// as the input can have numbers.
func (o *object) annotation(key string) (string, bool) {
	value, ok := fields.Map(o.value, "metadata", "annotations")[key]
	if s, isText := value.(string); isText || !ok {
		return s, ok
	}
	return fmt.Sprint(value), true
}

// annotate sets an annotation.
func (o *object) annotate(key, value string) { child(o.value, "metadata", "annotations")[key] = value }

// dropMeta removes labels or annotations, and the map if it becomes empty.
func (o *object) dropMeta(field string, drop func(key string, value any) bool) {
	meta := fields.Map(o.value, "metadata")
	m := fields.Map(meta, field)
	for key, value := range m {
		if drop(key, value) {
			delete(m, key)
		}
	}
	if len(m) == 0 {
		delete(meta, field)
	}
}

// serverFields are set by the API server.
var serverFields = []string{
	"uid", "resourceVersion", "managedFields", "ownerReferences", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
}

// serverFinalizers are set by Kubernetes.
var serverFinalizers = []any{
	"foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection",
	"service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking",
}

// controllerAnnotations are prefixes of annotations that kubectl and the controllers of Kubernetes
// set.
var controllerAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/", "deprecated.daemonset.template.generation",
	"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/",
	"kapp.k14s.io/identity", "kapp.k14s.io/original", "kapp.k14s.io/nonce",
}

// kappLabels are the labels that kapp finds its objects by. Pods keep them because selectors name
// them.
var kappLabels = []string{"kapp.k14s.io/app", "kapp.k14s.io/association"}

// jobLabels identify the pods of a Job, by its UID.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// authorAnnotations of this project are about the object, not about its package.
var authorAnnotations = []string{corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.OnImmutableAnnotation, corev1alpha1.IgnoredFieldsAnnotation, corev1alpha1.ExposeSecretValuesAnnotation}

// isManaged reports whether a label or an annotation belongs to this project.
func isManaged(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == corev1alpha1.GroupName || strings.HasSuffix(domain, "."+corev1alpha1.GroupName)
}

// clean removes the fields that belong to one cluster, or to the object's package there.
func (o *object) clean() {
	delete(o.value, "status")
	meta := fields.Map(o.value, "metadata")
	for _, key := range serverFields {
		delete(meta, key)
	}

	// An empty namespace is a value in YAML, but means none.
	if o.namespace() == "" {
		delete(meta, "namespace")
	}
	drop(meta, "finalizers", serverFinalizers...)
	o.cleanKind()
	o.dropMeta("annotations", func(key string, _ any) bool {
		kubernetes := slices.ContainsFunc(controllerAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		return kubernetes || isManaged(key) && !slices.Contains(authorAnnotations, key)
	})

	o.dropMeta("labels", func(key string, _ any) bool {
		return isManaged(key) || !o.is("", "Pod") && slices.Contains(kappLabels, key)
	})
}

// drop removes texts from a list, and the list if it becomes empty.
func drop(from map[string]any, field string, these ...any) {
	if list, isList := from[field].([]any); isList {
		from[field] = slices.DeleteFunc(list, func(item any) bool { return slices.Contains(these, item) })
		if len(fields.List(from, field)) == 0 {
			delete(from, field)
		}
	}
}

// cleanKind removes the fields that the API server and controllers write into specifications.
func (o *object) cleanKind() {
	spec := fields.Map(o.value, "spec")
	if template := fields.Map(spec, "template", "metadata"); template["creationTimestamp"] == nil {
		delete(template, "creationTimestamp")
	}

	switch o.kind() {
	case schema.GroupKind{Kind: "Namespace"}:
		drop(spec, "finalizers", "kubernetes")
		if len(spec) == 0 {
			delete(o.value, "spec")
		}
		// The API server sets this label on every Namespace.
		o.dropMeta("labels", func(key string, _ any) bool { return key == "kubernetes.io/metadata.name" })
	case schema.GroupKind{Kind: "Service"}:
		// None is the choice of a headless Service. Any other address belongs to the cluster.
		if spec["clusterIP"] != "None" {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
		}
		delete(spec, "healthCheckNodePort")
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		if _, bound := o.annotation("pv.kubernetes.io/bind-completed"); bound {
			delete(spec, "volumeName")
		}
	case schema.GroupKind{Kind: "Pod"}:
		// The scheduler chose the node.
		delete(spec, "nodeName")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		// The API server generates this selector.
		labels := fields.Map(spec, "selector", "matchLabels")
		if !fields.Bool(spec, "manualSelector") && (labels["controller-uid"] != nil || labels["batch.kubernetes.io/controller-uid"] != nil) {
			delete(spec, "selector")
			generated := func(key string, _ any) bool { return slices.Contains(jobLabels, key) }
			o.dropMeta("labels", generated)
			(&object{value: fields.Map(spec, "template")}).dropMeta("labels", generated)
		}
	}
}
