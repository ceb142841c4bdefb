package loader

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/patch"
	"lockstep.run/lockstep/internal/loader/violation"
)

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
	l.checkIgnoredFields()
	if mode := string(l.opts.CollisionProtection); mode != "" {
		if remedy, ok := checkCollisionMode(mode); !ok {
			l.add(violation.Violation{Reason: violation.ReasonConfigInvalid, Field: "spec.collisionProtection"}.Because(remedy, "%q is not a valid mode", mode))
		}
	}

	return set
}

func (l *load) unusedPatches(set *patch.Set) {
	for _, source := range set.Unused() {
		l.add(violation.Violation{Reason: violation.ReasonPatchInvalid, Field: source}.Because("Correct its target, or remove the patch.", "it matches no object of the package"))
	}
}

const enginePrefix = "package-operator.run/"

func isReserved(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(key, enginePrefix) || strings.HasSuffix(prefix, "."+strings.TrimSuffix(enginePrefix, "/"))
}

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

// patch reports whether the object still exists after the patches.
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
