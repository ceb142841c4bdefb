package loader

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/patch"
	"lockstep.run/lockstep/internal/loader/violation"
)

// adjustments compiles the patches of the Package and checks its other changes to objects. All of
// them come from the user and not from the package, so problems name fields of the Package.
func (l *load) adjustments() *patch.Set {
	set, problems := patch.Compile(l.opts.Patches)
	for _, p := range problems {
		v := violation.Violation{Reason: violation.ReasonPatchInvalid, Field: p.Source, Details: p.Details}
		if p.Part != "" {
			v.Field += "." + p.Part
		}
		if p.Limit {
			v.Reason = violation.ReasonLimit
		}
		l.add(v)
	}

	l.add(checkCommonMetadata(&l.opts.CommonMetadata)...)
	l.add(checkDefaultNamespace(l.opts)...)
	manifest.CheckIgnoredFields(l.opts.IgnoredFields, func(field, remedy, format string, args ...any) {
		l.add(violation.Violation{Reason: violation.ReasonPatchInvalid, Field: field}.Because(cmp.Or(remedy, "Correct spec.ignoredFields of the Package."), format, args...))
	})
	if mode := string(l.opts.CollisionProtection); mode != "" {
		if remedy, ok := checkCollisionMode(mode); !ok {
			l.add(violation.Violation{Reason: violation.ReasonConfigInvalid, Field: "spec.collisionProtection"}.Because(remedy, "%q is not a valid mode", mode))
		}
	}

	return set
}

// enginePrefix starts the labels and annotations of the engine, under Package Operator's domain.
const enginePrefix = "package-operator.run/"

// isReserved reports whether a key belongs to the domain of the engine or to one below it.
func isReserved(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(key, enginePrefix) || strings.HasSuffix(prefix, "."+strings.TrimSuffix(enginePrefix, "/"))
}

// checkCommonMetadata returns invalid and reserved keys and values. The API server would refuse
// each object with them, one at a time and only during the rollout.
func checkCommonMetadata(m *CommonMetadata) violation.Violations {
	var problems violation.Violations
	add := func(field, remedy, format string, args ...any) {
		problems = append(problems, violation.Violation{Reason: violation.ReasonMetadataInvalid, Field: field}.Because(remedy, format, args...))
	}

	for _, part := range []struct {
		name   string
		values map[string]string
	}{{"labels", m.Labels}, {"annotations", m.Annotations}} {
		for key, value := range part.values {
			field := document.Child("spec.commonMetadata."+part.name, key)
			if isReserved(key) {
				add(field, "Remove it.", "the engine sets keys that start with %s", enginePrefix)
				continue
			}
			// The API server lowers keys of annotations before this check; labels are checked
			// alike.
			if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
				add(field, "", "%q is not a valid key: %s", key, errs[0])
			}
			if errs := validation.IsValidLabelValue(value); part.name == "labels" && len(errs) > 0 {
				add(field, "", "%q is not a valid label value: %s", value, errs[0])
			}
		}
	}

	return problems
}

// checkDefaultNamespace refuses a default namespace that is invalid or belongs to a Package.
func checkDefaultNamespace(o *Options) violation.Violations {
	if o.DefaultNamespace == "" {
		return nil
	}
	v := violation.Violation{Reason: violation.ReasonConfigInvalid, Field: "spec.defaultNamespace"}
	if o.scope() != corev1alpha1.ScopeCluster {
		return violation.Violations{v.Because("Remove it.", "it is for a ClusterPackage only; objects of a Package are in its own namespace")}
	}
	if errs := validation.IsDNS1123Label(o.DefaultNamespace); len(errs) > 0 {
		return violation.Violations{v.Because("Name a namespace.", "%q is not a valid namespace: %s", o.DefaultNamespace, errs[0])}
	}
	return nil
}

// patch reports whether the object still exists after the patches. The checks after it see the
// patched object, so that a patch can also repair one.
func (c *check) patch() bool {
	annotations, _ := c.meta["annotations"].(map[string]any)
	condition := annotations[corev1alpha1.ConditionAnnotation]
	body, applied, problem := c.r.patches.Apply(c.body)
	if len(applied) == 0 {
		return true
	}
	if problem != nil {
		c.failPatch(problem)
		return false
	}
	if body == nil {
		return false
	}

	// From here on, messages name the patches, since the file does not contain the reported value.
	c.patched, c.body = applied, body
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		c.meta = nil
		c.fail(violation.ReasonPatchInvalid, "metadata", "", "metadata has to be a mapping")
		return false
	}

	c.meta = meta
	annotations, _ = meta["annotations"].(map[string]any)
	if after, set := annotations[corev1alpha1.ConditionAnnotation]; set && after != condition {
		c.fail(violation.ReasonPatchInvalid, annotationField(corev1alpha1.ConditionAnnotation), "Delete the object with a patch instead: $patch: delete.",
			"the annotation is evaluated before the patches")
		return false
	}

	return true
}

// failPatch reports a patch that cannot be applied, at the object it was applied to.
func (c *check) failPatch(problem *patch.Problem) {
	reason := violation.ReasonPatchInvalid
	if problem.Limit {
		reason = violation.ReasonLimit
	}
	v := c.at(reason, "")
	v.Details = problem.Error()
	if problem.Part != "patch" {
		v.Details = problem.Source + "." + problem.Part + ": " + problem.Details
	}
	c.problems = append(c.problems, c.r.sourceOf(v))
}

// commonMetadata sets spec.commonMetadata after the patches. It overrides both the package and the
// patches.
func (c *check) commonMetadata() {
	common := &c.r.opts.CommonMetadata
	for key, values := range map[string]map[string]string{"labels": common.Labels, "annotations": common.Annotations} {
		if len(values) == 0 {
			continue
		}
		if c.meta == nil {
			return // an object without metadata is refused
		}
		into, ok := c.meta[key].(map[string]any)
		if !ok {
			if c.meta[key] != nil {
				return // which is refused as well
			}
			into = map[string]any{}
			c.meta[key] = into
		}
		for name, value := range values {
			into[name] = value
		}
	}
}
