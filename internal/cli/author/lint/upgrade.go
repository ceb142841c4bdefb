package lint

import (
	_ "embed" // immutable.yaml
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/objects"
)

// immutableFile has the immutable fields of the built-in kinds.
//
//go:embed immutable.yaml
var immutableFile []byte

// immutable lists the fields of a kind that cannot change.
type immutable struct {
	// Fields cannot change at all. Below is a field whose children cannot change, except for
	// Except.
	Fields []string `json:"fields"`
	Below  string   `json:"below"`
	Except []string `json:"except"`
	// Defaults are the API server's, by field.
	Defaults map[string]any `json:"defaults"`
	// Chosen are fields that the cluster sets if the object does not.
	Chosen []string `json:"chosen"`
}

// immutables are the immutable fields by kind, such as Deployment.apps.
var immutables = sync.OnceValue(func() (all map[string]immutable) {
	text, err := yaml.YAMLToJSON(immutableFile)
	if err == nil {
		err = json.Unmarshal(text, &all) // preserves integers, as objects have them
	}
	if err != nil {
		panic(err) // it is embedded
	}
	return all
})

// immutableField reports changed immutable fields of objects that the upgrade does not recreate.
func immutableField(c *oneCase, r reporter) {
	const rename = "Give the object another name"
	for _, o := range c.objects {
		before := c.former[c.key(o)]
		if before == nil || c.passes(o) {
			continue
		}
		changed := changedImmutable(before, o)
		// As in the engine, the annotations of both versions apply, and Keep wins.
		either := func(key, value string) bool { return before.annotated(key, value) || o.annotated(key, value) }
		remedy := rename + ", or annotate it with " + corev1alpha1.OnImmutableAnnotation + ": " + corev1alpha1.OnImmutableRecreate + ", which recreates it."
		if either(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep) {
			remedy = rename + ": it has the annotation " + corev1alpha1.DeletionPolicyAnnotation + ": " + corev1alpha1.DeletionPolicyKeep + ", so it cannot be recreated."
		} else if either(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate) {
			continue
		}
		if len(changed) > 0 {
			r.at(o, changed[0], remedy, "differs from the older package in %s, which cannot change", strings.Join(changed, ", "))
		}
	}
}

// passes reports whether a Job does not survive until the upgrade under the same name: it has a
// TTL, or its name comes from the configuration, such as a hash of the image, and changes.
func (c *oneCase) passes(o *object) bool {
	if !o.is(jobKind) {
		return false
	}
	template := strings.HasSuffix(o.source.Path, ".gotmpl")
	return fields.Get(o.Object, "spec", "ttlSecondsAfterFinished") != nil ||
		template && !strings.Contains(string(c.files[o.source.Path]), o.GetName())
}

// changedImmutable returns the immutable fields that have changed.
func changedImmutable(before, after *object) []string {
	rule := immutables()[after.kind.String()]
	names := slices.Clone(rule.Fields)
	if rule.Below != "" {
		all := map[string]any{}
		maps.Copy(all, fields.Map(before.Object, rule.Below))
		maps.Copy(all, fields.Map(after.Object, rule.Below))
		for _, key := range fields.Keys(all) {
			if !slices.Contains(rule.Except, key) {
				names = append(names, rule.Below+"."+key)
			}
		}
	}

	if fields.Bool(before.Object, "immutable") {
		names = append(names, "data", "stringData", "binaryData", "immutable")
	}
	return slices.DeleteFunc(names, func(name string) bool {
		old, now := rule.value(before, name), rule.value(after, name)
		// The cluster has chosen the old value. It never chooses None.
		unknown := old == nil && slices.Contains(rule.Chosen, name) && now != corev1.ClusterIPNone
		// The completions of an indexed Job can change along with its parallelism.
		elastic := name == "spec.completions" && fields.Text(after.Object, "spec", "completionMode") == "Indexed" && reflect.DeepEqual(now, fields.Get(after.Object, "spec", "parallelism"))
		return unknown || elastic || reflect.DeepEqual(old, now)
	})
}

// value returns a field with its default.
func (i immutable) value(o *object, field string) any {
	if value := fields.Get(o.Object, strings.Split(field, ".")...); value != nil {
		return value
	}
	return i.Defaults[field]
}

// versionRemoved reports served versions of a definition that the upgrade removes.
func versionRemoved(c *oneCase, r reporter) {
	for _, o := range c.of(crdKind) {
		before := c.former[c.key(o)]
		if before == nil {
			continue
		}
		served := map[string]bool{}
		for _, version := range fields.Maps(o.Object, "spec", "versions") {
			served[fields.Text(version, "name")] = fields.Bool(version, "served")
		}

		for _, version := range fields.Maps(before.Object, "spec", "versions") {
			name := fields.Text(version, "name")
			if !fields.Bool(version, "served") || served[name] {
				continue
			}
			problem := "is no longer served"
			if _, exists := served[name]; !exists {
				problem = "was removed"
			}
			r.at(o, "spec.versions", "Keep it served until every client and every stored object uses a later version.", "the version %q %s", name, problem)
		}
	}
}

// leftoverInUse reports the first object in each Namespace, and of each definition, that only the
// older package has.
func leftoverInUse(c *oneCase, r reporter) {
	left := map[objects.Key]*object{}
	for key, before := range c.former {
		if before.is(namespaceKind, crdKind) {
			left[key] = before
		}
	}

	// A package that still has the Namespace or definition leaves nothing behind.
	for _, o := range c.objects {
		delete(left, c.key(o))
	}

	for _, o := range c.objects {
		for key, before := range left {
			defines := before.is(crdKind) && o.kind.Group == fields.Text(before.Object, "spec", "group") && o.kind.Kind == fields.Text(before.Object, "spec", "names", "kind")
			if !defines && (!before.is(namespaceKind) || o.GetNamespace() != before.GetName()) {
				continue
			}
			delete(left, key)
			r.at(o, "", "Keep it in the package, or move the objects before a version drops it.",
				"the older package contains its %s %s, and this one does not: an upgrade leaves it behind without a controller", key.Kind, key.Name)
		}
	}
}
