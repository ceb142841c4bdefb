package loader

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// loaderAnnotations are read and removed by the loader.
var loaderAnnotations = []string{
	corev1alpha1.PhaseAnnotation, corev1alpha1.ConditionAnnotation,
	corev1alpha1.ConditionMapAnnotation, corev1alpha1.CollisionProtectionAnnotation,
}

// These are labels and annotations that the engine sets on managed objects.
var (
	reservedLabels = []string{
		corev1alpha1.CacheLabel, corev1alpha1.PackageLabel, corev1alpha1.PackageInstanceLabel,
		corev1alpha1.PackageVersionLabel, corev1alpha1.PackageProviderLabel, corev1alpha1.GeneratedLabel,
	}
	reservedAnnotations = []string{corev1alpha1.RevisionAnnotation, corev1alpha1.OwnersAnnotation, corev1alpha1.AdoptedAnnotation}
)

// texts returns a mapping from text to text in the metadata, or nil.
func (c *check) texts(key string, reason violation.Reason) map[string]any {
	field := "metadata." + key
	switch v := c.meta[key].(type) {
	case nil:
		delete(c.meta, key)
		return nil
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if _, ok := v[name].(string); !ok {
				c.fail(reason, document.Child(field, name), "Put it in quotes.", "the value is not a text")
			}
			// The lower case follows the API server's check of annotations.
			if errs := validation.IsQualifiedName(strings.ToLower(name)); len(errs) > 0 {
				c.fail(reason, document.Child(field, name), "", "%q is not a valid key: %s", name, errs[0])
			}
		}
		return v
	default:
		c.fail(reason, field, "", "%s has to be a mapping", field)
		return nil
	}
}

// reserved removes keys that the engine sets. A package could otherwise claim an owner or a
// revision.
func (c *check) reserved(field string, values map[string]any, keys []string) {
	for _, key := range keys {
		if _, ok := values[key]; ok {
			c.dropped(violation.ReasonObjectInvalid, document.Child(field, key), "Remove it; the engine sets it.", "a package must not set it")
			delete(values, key)
		}
	}
}

// annotations checks the annotations and returns a mapping that can be modified.
func (c *check) annotations() map[string]any {
	annotations := c.texts("annotations", violation.ReasonAnnotationInvalid)
	c.reserved("metadata.annotations", annotations, reservedAnnotations)
	size := 0
	for key, value := range annotations {
		text, _ := value.(string)
		size += len(key) + len(text)
	}
	if size > limits.AnnotationBytes {
		c.fail(violation.ReasonLimit, "metadata.annotations", "", "the annotations have %d bytes; the API server's limit is %d", size, limits.AnnotationBytes)
	}
	// These change how objects are deleted, replaced or checked. A misspelt value must not have the
	// opposite effect silently.
	for key, want := range map[string]string{
		corev1alpha1.DeletionPolicyAnnotation: corev1alpha1.DeletionPolicyKeep,
		corev1alpha1.OnImmutableAnnotation:    corev1alpha1.OnImmutableRecreate,

		corev1alpha1.ExposeSecretValuesAnnotation: corev1alpha1.ExposeSecretValuesTrue,
	} {
		if value, ok := annotations[key].(string); ok && value != want {
			c.fail(violation.ReasonAnnotationInvalid, document.Child("metadata.annotations", key), "Set it to "+want+", or remove it.", "%q is not a valid value", value)
		}
	}
	return annotations
}

// unreadableLabels drops all labels if one is not a text, as Package Operator does.
func (c *check) unreadableLabels() {
	if c.r.strict || c.meta["labels"] == nil {
		return
	}

	field := "metadata.labels"
	labels, readable := c.meta["labels"].(map[string]any)
	for _, name := range sortedKeys(labels) {
		if _, ok := labels[name].(string); !ok {
			field, readable = document.Child(field, name), false
			break
		}
	}

	if !readable {
		c.dropped(violation.ReasonLabelsInvalid, field, "Put it in quotes.", "the value is not a text; all labels of the object are")
		delete(c.meta, "labels")
	}
}

// labels checks keys and values. An invalid label value is an error here, and not only at the API
// server.
func (c *check) labels() {
	c.unreadableLabels()
	labels := c.texts("labels", violation.ReasonLabelsInvalid)
	c.reserved("metadata.labels", labels, reservedLabels)
	for _, key := range sortedKeys(labels) {
		value, ok := labels[key].(string)
		if errs := validation.IsValidLabelValue(value); ok && len(errs) > 0 {
			c.fail(violation.ReasonLabelsInvalid, document.Child("metadata.labels", key), "", "%q is not a valid label value: %s", value, errs[0])
		}
	}
}

// sortedKeys returns the keys in the order of messages, because maps have none.
func sortedKeys(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}

// walk calls visit for every key, and for every value except mappings and lists, in order, until
// visit returns false.
func walk(v any, field string, visit func(field string, v any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			child := document.Child(field, key)
			if !visit(child, key) || !walk(v[key], child, visit) {
				return false
			}
		}
		return true
	case []any:
		for i, item := range v {
			if !walk(item, document.Index(field, i), visit) {
				return false
			}
		}
		return true
	}

	return visit(field, v)
}

// wellKnownLabels returns the labels of the ObjectDeployment and of each managed object.
func wellKnownLabels(name string, spec *manifestsv1alpha1.PackageManifestSpec) map[string]string {
	labels := map[string]string{corev1alpha1.PackageLabel: name, corev1alpha1.PackageInstanceLabel: name}
	if spec.Version != "" {
		// Label values cannot have the plus sign of a version's build.
		labels[corev1alpha1.PackageVersionLabel] = strings.ReplaceAll(spec.Version, "+", "_")
	}
	if spec.Provider != "" {
		labels[corev1alpha1.PackageProviderLabel] = spec.Provider
	}
	return labels
}
