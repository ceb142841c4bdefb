package kickstart

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/fields"
)

// serverFields are set by the API server.
var serverFields = []string{
	"uid", "resourceVersion", "managedFields", "ownerReferences", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
}

// serverFinalizers are set by Kubernetes.
var serverFinalizers = []string{
	"foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection",
	"service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking",
}

// controllerAnnotations are prefixes of those that kubectl and controllers of Kubernetes
// set.
var controllerAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/", "deprecated.daemonset.template.generation",
	"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/",
}

// jobLabels identify the pods of a Job, by its UID.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// authorAnnotations of this project are about the object, and not about its package.
var authorAnnotations = []string{corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.OnImmutableAnnotation, corev1alpha1.ExposeSecretValuesAnnotation}

// isManaged reports whether a label or an annotation is one of this project.
func isManaged(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == corev1alpha1.GroupName || strings.HasSuffix(domain, "."+corev1alpha1.GroupName)
}

// clean removes what belongs to one cluster, or to the package of the object there.
func (o *object) clean() {
	delete(o.value, "status")
	meta := fields.Map(o.value, "metadata")
	for _, key := range serverFields {
		delete(meta, key)
	}
	if o.namespace() == "" {
		delete(meta, "namespace")
	}
	drop(meta, "finalizers", serverFinalizers)
	o.cleanKind()
	o.dropMeta("annotations", func(key string, _ any) bool {
		kubernetes := slices.ContainsFunc(controllerAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		return kubernetes || isManaged(key) && !slices.Contains(authorAnnotations, key)
	})
	o.dropMeta("labels", func(key string, _ any) bool { return isManaged(key) })
}

// drop removes texts from a list, and the list if it becomes empty.
func drop(from map[string]any, field string, these []string) {
	list, isList := from[field].([]any)
	if !isList {
		return
	}
	list = slices.DeleteFunc(list, func(item any) bool {
		s, isText := item.(string)
		return isText && slices.Contains(these, s)
	})
	if from[field] = list; len(list) == 0 {
		delete(from, field)
	}
}

// cleanKind removes what the API server and controllers write into specifications.
func (o *object) cleanKind() {
	spec := fields.Map(o.value, "spec")
	if template := fields.Map(spec, "template", "metadata"); template["creationTimestamp"] == nil {
		delete(template, "creationTimestamp")
	}
	switch o.kind() {
	case schema.GroupKind{Kind: "Namespace"}:
		drop(spec, "finalizers", []string{"kubernetes"})
		if len(spec) == 0 {
			delete(o.value, "spec")
		}
		o.dropMeta("labels", func(key string, _ any) bool { return key == "kubernetes.io/metadata.name" })
	case schema.GroupKind{Kind: "Service"}:
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
		delete(spec, "nodeName")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		o.cleanJob(spec)
	}
}

// cleanJob removes the selector that the API server generates.
func (o *object) cleanJob(spec map[string]any) {
	labels := fields.Map(spec, "selector", "matchLabels")
	if fields.Bool(spec, "manualSelector") || labels["controller-uid"] == nil && labels["batch.kubernetes.io/controller-uid"] == nil {
		return
	}
	delete(spec, "selector")
	generated := func(key string, _ any) bool { return slices.Contains(jobLabels, key) }
	o.dropMeta("labels", generated)
	(&object{value: fields.Map(spec, "template")}).dropMeta("labels", generated)
}
