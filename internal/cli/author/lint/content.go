package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
)

// objectRules are about single objects.
var objectRules = []Rule{
	{
		"keep-data", Warning,
		"A CustomResourceDefinition or a PersistentVolumeClaim is deleted with the package, and with it all resources of its kind, or the data.",
		keepData,
	},
	{
		"latest-image", Error,
		"An image has the tag latest or none: what runs depends on the day, and a rollback brings the same tag.",
		latestImage,
	},
	{
		"unpinned-image", Warning,
		"An image is named by a tag and not by its digest: what runs is not what was tested.",
		unpinnedImage,
	},
	{
		"selector-mismatch", Error,
		"The selector of a workload does not match the labels of its own pods, which the API server refuses.",
		selectorMismatch,
	},
	{
		"service-without-backend", Warning,
		"A Service selects no pods of the package, in the namespace that it is in.",
		serviceWithoutBackend,
	},
	{
		"secret-in-image", Error,
		"A file of the package has a Secret with its values: whoever may pull the image can read them.",
		secretInImage,
	},
	{
		"all-powers", Warning,
		"A role allows everything on everything, or cluster-admin is bound.",
		allPowers,
	},
}

func keepData(c *oneCase, r reporter) {
	for _, o := range c.of(crdKind, claimKind) {
		if o.annotated(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep) {
			continue
		}
		lost := "the data in it"
		if o.is(crdKind) {
			lost = "every " + text(o.Object, "spec", "names", "kind") + " in the cluster"
		}
		r.at(o, "metadata.annotations", "Annotate it with "+corev1alpha1.DeletionPolicyAnnotation+": "+corev1alpha1.DeletionPolicyKeep+", or disable the rule where that is meant.",
			"deleting the package deletes %s", lost)
	}
}

// images calls visit for the image of every container.
func (c *oneCase) images(visit func(o *object, field, image string)) {
	for _, o := range c.objects {
		spec, path := podSpec(o)
		for _, list := range []string{"initContainers", "containers"} {
			for _, container := range mappings(spec, list) {
				visit(o, fmt.Sprintf("%s.%s[name=%q].image", path, list, text(container, "name")), text(container, "image"))
			}
		}
	}
}

const pinRemedy = "List it under spec.images of the manifest, run `kubectl package update`, and write {{ .images.NAME }} in a template."

// tagOf returns the tag of an image, "" where it has none, and whether it is
// named by its digest.
func tagOf(image string) (tag string, pinned bool) {
	if strings.Contains(image, "@") || image == loader.StaticImage {
		return "", true
	}
	last := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ = strings.Cut(last, ":")
	return tag, false
}

func latestImage(c *oneCase, r reporter) {
	c.images(func(o *object, field, image string) {
		if tag, pinned := tagOf(image); image != "" && !pinned && (tag == "" || tag == "latest") {
			r.at(o, field, pinRemedy, "%s", image)
		}
	})
}

func unpinnedImage(c *oneCase, r reporter) {
	c.images(func(o *object, field, image string) {
		if tag, pinned := tagOf(image); image != "" && !pinned && tag != "" && tag != "latest" {
			r.at(o, field, pinRemedy, "%s", image)
		}
	})
}

func selectorMismatch(c *oneCase, r reporter) {
	for _, o := range c.of(workloadKinds...) {
		want := mapping(o.Object, "spec", "selector", "matchLabels")
		have := mapping(o.Object, "spec", "template", "metadata", "labels")
		for _, key := range sortedKeys(want) {
			if have[key] != want[key] {
				r.at(o, "spec.selector.matchLabels", "Use the same labels in spec.template.metadata.labels.", "its pods have no label %s: %v", key, want[key])
				break
			}
		}
	}
}

func serviceWithoutBackend(c *oneCase, r reporter) {
	for _, o := range c.of(serviceKind) {
		selector := mapping(o.Object, "spec", "selector")
		if len(selector) == 0 {
			continue
		}
		_, backends := c.backends(c.namespaceOf(o), o.GetName())
		if len(backends) == 0 && !c.podMatches(o, selector) && !c.makesPods() {
			r.at(o, "spec.selector", "Use the labels of the pods that answer.", "no workload of the package has pods with these labels")
		}
	}
}

// podMatches reports whether a Pod of the package is selected.
func (c *oneCase) podMatches(service *object, selector map[string]any) bool {
	want := labels.Set{}
	for key, value := range selector {
		want[key] = fmt.Sprint(value)
	}
	return slices.ContainsFunc(c.of(podKind), func(pod *object) bool {
		return c.namespaceOf(pod) == c.namespaceOf(service) && labels.SelectorFromSet(want).Matches(labels.Set(pod.GetLabels()))
	})
}

// makesPods reports whether the package has resources of kinds that are not
// Kubernetes' own, whose controllers may make pods.
func (c *oneCase) makesPods() bool {
	return slices.ContainsFunc(c.objects, func(o *object) bool {
		return strings.Contains(o.kind.Group, ".") && !strings.HasSuffix(o.kind.Group, ".k8s.io")
	})
}

func secretInImage(c *oneCase, r reporter) {
	for _, o := range c.of(secretKind) {
		if strings.HasSuffix(o.source.Path, ".gotmpl") {
			continue // the values may come from the configuration
		}
		for _, field := range []string{"data", "stringData"} {
			for _, key := range sortedKeys(mapping(o.Object, field)) {
				if value, _ := at(o.Object, field, key).(string); value != "" {
					r.at(o, field, "Let the value come from a Secret of the cluster, by spec.configFrom of the Package.", "it has a value for %q", key)
					break
				}
			}
		}
	}
}

func allPowers(c *oneCase, r reporter) {
	const remedy = "Name the API groups, resources and verbs that are needed."
	for _, o := range c.of(roleKind, clusterRoleKind) {
		for i, rule := range mappings(o.Object, "rules") {
			if slices.Contains(texts(rule["verbs"]), "*") && slices.Contains(texts(rule["resources"]), "*") && slices.Contains(texts(rule["apiGroups"]), "*") {
				r.at(o, fmt.Sprintf("rules[%d]", i), remedy, "it allows every verb on every resource")
			}
		}
	}
	for _, o := range c.of(roleBindingKind, clusterRoleBindingKind) {
		if text(o.Object, "roleRef", "name") == "cluster-admin" && text(o.Object, "roleRef", "kind") == "ClusterRole" {
			r.at(o, "roleRef", "Bind a role that allows what is needed.", "it binds cluster-admin")
		}
	}
}
