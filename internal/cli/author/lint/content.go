package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/cli/author/gates"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// keepData reports all objects that are lost along with the package in one finding, at the first of
// them.
func keepData(c *oneCase, r reporter) {
	var kinds, claims []string
	var first *object
	for _, o := range c.of(crdKind, claimKind) {
		if o.annotated(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep) {
			continue
		}
		if first == nil {
			first = o
		}
		if o.is(crdKind) {
			kinds = append(kinds, fields.Text(o.Object, "spec", "names", "kind"))
		} else {
			claims = append(claims, o.GetName())
		}
	}

	if first == nil {
		return
	}
	var lost []string
	if len(kinds) > 0 {
		lost = append(lost, "every "+violation.Listed(kinds)+" in the cluster")
	}

	if len(claims) > 0 {
		lost = append(lost, "the data in "+violation.Listed(claims))
	}
	r.at(first, "metadata.annotations", "Annotate the objects to keep with "+corev1alpha1.DeletionPolicyAnnotation+": "+corev1alpha1.DeletionPolicyKeep+", or disable the rule if the deletion is intended.",
		"deleting the package deletes %s", strings.Join(lost, ", and "))
}

// imageRule returns a rule about images without a digest: with the tag latest or without a tag, or
// with any other tag.
func imageRule(latest bool) func(*oneCase, reporter) {
	const remedy = "List it under spec.images of the manifest, run `kubectl package update`, and write {{ .images.NAME }} in a template."
	return func(c *oneCase, r reporter) {
		for _, o := range c.of(kindsWithPods...) {
			fields.Containers(o.Object, func(path, _ string, container map[string]any) {
				image := fields.Text(container, "image")
				if image != "" && !pinned(image) && hasLatestTag(image) == latest && !c.configured(image) {
					r.at(o, fmt.Sprintf("%s[name=%q].image", path, fields.Text(container, "name")), remedy, "%s", image)
				}
			})
		}
	}
}

// configured reports whether an image is a value of the configuration. Test cases and defaults only
// stand in for the image that each installation names.
func (c *oneCase) configured(image string) bool {
	values, err := json.Marshal(c.Package.Config)
	return err == nil && bytes.Contains(values, strconv.AppendQuote(nil, image))
}

// pinned reports whether an image has a digest, or is the placeholder for one.
func pinned(image string) bool { return strings.Contains(image, "@") || image == loader.StaticImage }

// hasLatestTag reports whether a reference has the tag latest or none. A colon before the last
// slash belongs to the port.
func hasLatestTag(image string) bool {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag == "" || tag == "latest"
}

// serviceWithoutBackend reports Services whose selector matches no pods of the package.
func serviceWithoutBackend(c *oneCase, r reporter) {
	for _, o := range c.of(serviceKind) {
		selects := len(fields.Map(o.Object, "spec", "selector")) > 0
		if selects && len(c.backends(o, podKind)) == 0 && len(c.backends(o, workloadKinds...)) == 0 && !c.makesPods() {
			r.at(o, "spec.selector", "Use the labels of the pods that serve it.", "no workload of the package has pods with these labels")
		}
	}
}

// makesPods reports whether the package has custom resources, whose controllers might create pods,
// or workloads that can write pods and their labels.
func (c *oneCase) makesPods() bool {
	return slices.ContainsFunc(c.objects, func(o *object) bool {
		custom := strings.Contains(o.kind.Group, ".") && !strings.HasSuffix(o.kind.Group, ".k8s.io")
		return custom || o.is(workloadKinds...) && gates.MayWritePods(c.objects, o)
	})
}

// secretInImage reports plain files with values of Secrets, one finding for each field.
func secretInImage(c *oneCase, r reporter) {
	for _, o := range c.of(secretKind) {
		if strings.HasSuffix(o.source.Path, ".gotmpl") {
			continue // the values might come from the configuration
		}
		for _, field := range []string{"data", "stringData"} {
			for _, key := range fields.Keys(fields.Map(o.Object, field)) {
				if fields.Text(o.Object, field, key) != "" {
					r.at(o, field, "Read the value from a Secret of the cluster, with spec.configFrom of the Package.", "it has a value for %q", key)
					break
				}
			}
		}
	}
}

// allPowers reports roles without limits, and bindings of cluster-admin.
func allPowers(c *oneCase, r reporter) {
	for _, o := range c.of(roleKind, clusterRoleKind) {
		for i, rule := range fields.Maps(o.Object, "rules") {
			everything := func(field string) bool { return slices.Contains(fields.Texts(rule, field), "*") }
			if everything("verbs") && everything("resources") && everything("apiGroups") {
				r.at(o, fmt.Sprintf("rules[%d]", i), "Name the API groups, resources and verbs that it needs.", "it allows every verb on every resource")
			}
		}
	}

	for _, o := range c.of(roleBindingKind, clusterRoleBindingKind) {
		if fields.Text(o.Object, "roleRef", "name") == "cluster-admin" && fields.Text(o.Object, "roleRef", "kind") == "ClusterRole" {
			r.at(o, "roleRef", "Bind a role with only the rights that it needs.", "it binds cluster-admin")
		}
	}
}
