package kickstart

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// serverFields are what the API server sets. They are there in what kubectl get
// prints.
var serverFields = []string{
	"uid", "resourceVersion", "managedFields", "ownerReferences", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
}

// serverFinalizers are those that Kubernetes sets itself.
var serverFinalizers = []string{
	"foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection",
	"service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking",
}

// controllerAnnotations begin those that controllers of Kubernetes, and kubectl,
// keep notes in.
var controllerAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/", "deprecated.daemonset.template.generation",
	"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/",
}

// authors are the annotations of this project that say something about the object
// and nothing about the package that it was in.
var authors = []string{corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.OnImmutableAnnotation, corev1alpha1.ExposeSecretValuesAnnotation}

// engines reports whether a label or an annotation is one of this project.
func engines(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == corev1alpha1.GroupName || strings.HasSuffix(domain, "."+corev1alpha1.GroupName)
}

// clean takes out what belongs to one cluster, and what means something in the
// package that the object was in.
func (o *object) clean() {
	delete(o.value, "status")
	meta, _ := o.value["metadata"].(map[string]any)
	for _, key := range serverFields {
		delete(meta, key)
	}
	if text(meta, "namespace") == "" {
		delete(meta, "namespace")
	}
	drop(meta, "finalizers", serverFinalizers)
	o.cleanKind()
	o.dropMeta("annotations", func(key string, _ any) bool {
		kubernetes := slices.ContainsFunc(controllerAnnotations, func(begin string) bool { return strings.HasPrefix(key, begin) })
		return kubernetes || engines(key) && !slices.Contains(authors, key)
	})
	o.dropMeta("labels", func(key string, _ any) bool { return engines(key) })
}

// drop takes texts out of a list, and the list where nothing is left.
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

// cleanKind takes out what the API server and controllers write into the
// specification of some kinds.
func (o *object) cleanKind() {
	spec, _ := o.value["spec"].(map[string]any)
	if template, _ := dig(spec, "template", "metadata").(map[string]any); template != nil && template["creationTimestamp"] == nil {
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
		if ip := text(spec, "clusterIP"); ip != "None" {
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

// cleanJob takes out the selector that the API server makes for a Job, by the Job's
// own UID.
func (o *object) cleanJob(spec map[string]any) {
	selector, _ := dig(spec, "selector", "matchLabels").(map[string]any)
	made := func(key string, _ any) bool {
		return slices.Contains([]string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}, key)
	}
	if manual, _ := spec["manualSelector"].(bool); manual || selector["controller-uid"] == nil && selector["batch.kubernetes.io/controller-uid"] == nil {
		return
	}
	delete(spec, "selector")
	o.dropMeta("labels", made)
	if template, _ := spec["template"].(map[string]any); template != nil {
		(&object{value: template}).dropMeta("labels", made)
	}
}
