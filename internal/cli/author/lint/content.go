package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
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
				if image != "" && !strings.Contains(image, "@") && image != loader.StaticImage && hasLatestTag(image) == latest && !c.configured(image) {
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

// hasLatestTag reports whether a reference has the tag latest or none. A colon before the last
// slash belongs to the port.
func hasLatestTag(image string) bool {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag == "" || tag == "latest"
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
