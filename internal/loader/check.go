package loader

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects/spelling"
)

// run returns the object, or nil if it is left out or has a problem. The condition is evaluated on
// the object as written, and all other checks see it after the patches.
func (c *check) run() *object {
	body, ok := c.doc.Value.(map[string]any)
	if !ok {
		c.fail(violation.ReasonInvalidYAML, "", "", "the document is not an object")
		return nil
	}

	c.body = body
	if meta, ok := body["metadata"].(map[string]any); ok {
		c.meta = meta
	} else if body["metadata"] != nil {
		c.invalid("metadata", "", "metadata has to be a mapping")
		return nil
	}

	if !c.conditionHolds() || !c.patch() {
		return nil
	}
	// Every other check would fail as well if a mandatory field has another name.
	if c.misspelt() {
		return nil
	}

	c.commonMetadata()
	c.gvk()
	c.identity()
	c.serverFields()
	c.secretValues()
	c.scope()
	annotations := c.ignoredFields(c.annotations())
	c.labels()
	c.phase(annotations)
	c.collisionProtection(annotations)
	c.conditionMappings(annotations)
	c.secrets(annotations)
	if len(c.problems) > 0 {
		return nil
	}

	return c.finish(annotations)
}

// conditionHolds evaluates the condition annotation, and sets left if it leaves the object out.
// Without a context for templates, every object is kept.
func (c *check) conditionHolds() bool {
	annotations, _ := c.meta["annotations"].(map[string]any)
	expression, ok := annotations[corev1alpha1.ConditionAnnotation].(string)
	if !ok || c.r.condition == nil {
		return true
	}
	keep, err := c.r.keep(expression)
	if err != nil {
		c.fail(violation.ReasonInvalidCELCondition, annotationField(corev1alpha1.ConditionAnnotation), "", "%v", err)
	}
	c.left = err == nil && !keep
	return keep
}

// missing maps fields that every object has to the names in Kubernetes' messages about missing
// fields.
var missing = map[string]string{"apiVersion": "apiVersion", "kind": "Kind", "metadata": "metadata"}

// misspelt reports whether another field was probably meant for a mandatory one, and names it. A
// missing name, kind or phase is only a consequence then.
func (c *check) misspelt() bool {
	found := false
	for _, field := range []string{"apiVersion", "kind", "metadata"} {
		if _, there := c.body[field]; there {
			continue
		}
		for _, written := range sortedKeys(c.body) {
			if near, ok := spelling.Nearest(written, []string{field}); ok {
				c.invalid(written, violation.Suggest(written, []string{near}, ""), "Object '%s' is missing, and no object has a field of this name", missing[field])
				found = true
			}
		}
	}

	return found
}

// gvk reads apiVersion and kind, and refuses lists, whose items are objects of their own.
func (c *check) gvk() {
	apiVersion, _ := c.body["apiVersion"].(string)
	kind, _ := c.body["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case apiVersion == "":
		c.fail(violation.ReasonMissingGVK, "apiVersion", "", "apiVersion is missing or no text")
	case err != nil || gv.Version == "":
		c.fail(violation.ReasonMissingGVK, "apiVersion", "Write it as v1 or group/v1.", "%q is not a valid apiVersion", apiVersion)
	}

	if kind == "" {
		c.fail(violation.ReasonMissingGVK, "kind", "", "Object 'Kind' is missing")
	}
	if _, isList := c.body["items"].([]any); isList && strings.HasSuffix(kind, "List") {
		c.invalid("items", "Write its items as documents of their own.", "a list cannot be an object of a package")
	}

	c.out.gvk = gv.WithKind(kind)
}

// identity checks name and namespace as the API server does for all kinds. Stricter rules of single
// kinds are left to the API server.
func (c *check) identity() {
	name, isText := c.meta["name"].(string)
	switch {
	case c.meta["generateName"] != nil:
		c.invalid("metadata.generateName", "Set metadata.name.", "a package cannot find an object again whose name the API server makes up")
	case c.meta["name"] != nil && !isText:
		c.invalid("metadata.name", "Put it in quotes.", "the name is not a text")
	case name == "":
		c.invalid("metadata.name", "Set metadata.name.", "the object has no name")
	case len(name) > validation.DNS1123SubdomainMaxLength:
		c.invalid("metadata.name", "Shorten it.", "the name has %d characters; the limit is %d", len(name), validation.DNS1123SubdomainMaxLength)
	default:
		// The API server accepts these in names of some kinds, but names appear in messages.
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) }) {
			c.invalid("metadata.name", "", "control characters are not allowed")
		}
		if errs := content.IsPathSegmentName(name); len(errs) > 0 {
			c.invalid("metadata.name", "", "%q is not a valid name: %s", name, errs[0])
		}
	}

	c.out.name = name
	// An empty namespace means the same as a missing one.
	switch namespace := c.meta["namespace"].(type) {
	case nil:
		delete(c.meta, "namespace")
	case string:
		if namespace == "" {
			delete(c.meta, "namespace")
		} else if errs := validation.IsDNS1123Label(namespace); len(errs) > 0 {
			c.invalid("metadata.namespace", "", "%q is not a valid namespace: %s", namespace, errs[0])
		}
		c.out.namespace = namespace
	default:
		c.invalid("metadata.namespace", "Put it in quotes.", "the namespace is not a text")
	}
}

// secretValues refuses values of a Secret that are not texts, such as numbers, as the API server
// does.
func (c *check) secretValues() {
	if c.out.gvk.GroupKind() != secretKind {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := c.body[field].(map[string]any)
		for _, name := range sortedKeys(values) {
			remedy := "Put it in quotes."
			switch values[name].(type) {
			case string, nil:
				continue
			case map[string]any, []any:
				remedy = "Write it as a block with |."
			}
			if field == "data" {
				remedy = "Move it to stringData, in quotes, or encode it in base64."
			}
			c.invalid(document.Child(field, name), remedy, "the value is not a text")
		}
	}
}

// These fields are set by the API server. It refuses to apply the first ones and ignores the
// others.
var (
	refusedFields = []string{"uid", "resourceVersion", "managedFields", "ownerReferences"}
	ignoredFields = []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"}
)

// serverFields rejects fields of the API server. It removes empty ones, which some tools write.
func (c *check) serverFields() {
	const remedy = "Remove it; the API server sets it."
	for _, key := range refusedFields {
		if v, ok := c.meta[key]; ok && !isEmpty(v) {
			c.invalid("metadata."+key, remedy, "a package must not set it")
		}
		delete(c.meta, key)
	}

	for _, key := range ignoredFields {
		if v, ok := c.meta[key]; ok && !isEmpty(v) {
			c.dropped(violation.ReasonObjectInvalid, "metadata."+key, remedy, "a package must not set it")
		}
		delete(c.meta, key)
	}

	if v, ok := c.body["status"]; ok && !isEmpty(v) {
		c.dropped(violation.ReasonObjectInvalid, "status", "Remove it; the controller of the object sets it.", "a package must not set it")
	}

	delete(c.body, "status")
}

// isEmpty reports whether a value and everything in it is a zero value, such as the empty status
// that code generators write.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), isFilled)
	case []any:
		return !slices.ContainsFunc(v, isFilled)
	}
	return v == nil || v == "" || v == false || v == int64(0)
}

// isFilled is the opposite of isEmpty, for slices.ContainsFunc.
func isFilled(v any) bool { return !isEmpty(v) }

// finish removes the annotations of the loader, adds the labels of the package, and encodes the
// object in the form that is stored.
func (c *check) finish(annotations map[string]any) *object {
	for _, key := range loaderAnnotations {
		delete(annotations, key)
	}

	if len(annotations) == 0 {
		delete(c.meta, "annotations")
	}

	labels, _ := c.meta["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		c.meta["labels"] = labels
	}

	for key, value := range c.r.labels {
		labels[key] = value
	}

	c.out.defines = definitionOf(c.out.gvk.GroupKind(), c.body)
	c.out.aggregates = aggregationOf(c.out.gvk.GroupKind(), c.body)
	c.out.images = c.imagesOf()
	// Keys are sorted by the encoder, so equal objects have equal bytes in each revision.
	raw, err := json.Marshal(c.body)
	if err != nil {
		c.invalid("", "", "%v", err)
		return nil
	}
	if len(raw) > limits.ObjectBytes {
		c.fail(violation.ReasonLimit, "", "Split it.", "the object has %d bytes of JSON; the limit is %d", len(raw), limits.ObjectBytes)
		return nil
	}

	c.out.stored.Object = runtime.RawExtension{Raw: raw}
	c.out.at = c.r.sourceOf(c.at("", "metadata.name"))
	c.out.at.Field, c.out.at.Details = "", ""
	// This is a copy, because a pointer into the check would keep the document with all its nodes.
	done := c.out
	return &done
}
