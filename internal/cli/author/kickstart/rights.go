package kickstart

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
)

// patchable are the resources of kinds that Jobs patch during installations, such as
// with the certificate of a webhook.
var patchable = map[schema.GroupKind]string{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: "validatingwebhookconfigurations",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   "mutatingwebhookconfigurations",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               "customresourcedefinitions",
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           "apiservices",
}

// patchJobs moves Jobs behind the objects that they have the rights to patch.
func (m *maker) patchJobs(all []*object) {
	byAccount := map[string][]*object{}
	for _, o := range all {
		if o.is("batch", "Job") && (o.hook == nil || !o.hook.before()) {
			key := o.namespace() + "/" + account(o)
			byAccount[key] = append(byAccount[key], o)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byAccount)) {
		jobs := byAccount[key]
		if targets := patched(all, jobs[0]); len(targets) > 0 {
			for _, job := range patchers(jobs) {
				m.putBehind(job, targets)
			}
		}
	}
}

// putBehind moves a Job behind its targets. A probed APIService waits for the patch,
// so the Job is in its phase.
func (m *maker) putBehind(job *object, targets []*object) {
	last := slices.MaxFunc(targets, func(a, b *object) int { return phaseIndex(a.phase) - phaseIndex(b.phase) })
	phase := last.phase
	if phase == phaseAdmission {
		phase = phaseAdmissionPatch
	}
	earlier := phaseIndex(job.phase) >= 0 && phaseIndex(job.phase) < phaseIndex(phase)
	if earlier || job.hook != nil && phase == phaseAdmissionPatch {
		job.phase = phase
		m.note("%s may patch %s, as its rights say: it is in phase %s, behind it", job, last, phase)
	}
}

// patchers returns the Jobs of one ServiceAccount that patch: those with a name or
// command line that says so, such as "patch" besides one with "create"; else all.
func patchers(jobs []*object) []*object {
	var out []*object
	for _, job := range jobs {
		if slices.ContainsFunc(append(commandTexts(job), job.name()), saysPatch) {
			out = append(out, job)
		}
	}
	if len(out) == 0 {
		return jobs
	}
	return out
}

func saysPatch(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"patch", "patches", "inject", "update", "webhook", "webhooks", "crd", "crds"}, w)
	})
}

// containers calls visit for the containers of an object's pods.
func containers(o *object, visit func(list string, container map[string]any)) {
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range fields.Maps(podOf(o), list) {
			visit(list, c)
		}
	}
}

// commandTexts returns the command lines and environment of the containers of an object.
func commandTexts(o *object) []string {
	var out []string
	containers(o, func(_ string, c map[string]any) {
		for _, item := range slices.Concat(fields.List(c, "command"), fields.List(c, "args")) {
			out = append(out, fields.Text(item))
		}
		for _, e := range fields.List(c, "env") {
			out = append(out, fields.Text(e, "value"))
		}
	})
	return out
}

// patched returns the objects of the package that an object may patch by a rule that
// names their resource.
func patched(all []*object, o *object) []*object {
	var out []*object
	for _, rule := range rules(all, o) {
		if !grants(rule, "verbs", "patch", "update", "*") {
			continue
		}
		for _, target := range all {
			resource := patchable[target.kind()]
			named := len(fields.List(rule, "resourceNames")) == 0 || grants(rule, "resourceNames", target.name())
			if resource != "" && named && grants(rule, "apiGroups", target.gvk.Group, "*") && grants(rule, "resources", resource) {
				out = append(out, target)
			}
		}
	}
	return out
}

// grants reports whether a field of a rule has one of the values.
func grants(rule any, field string, values ...string) bool {
	return slices.ContainsFunc(fields.List(rule, field), func(item any) bool {
		return slices.Contains(values, fields.Text(item))
	})
}

// account is the ServiceAccount of an object's pods.
func account(o *object) string {
	pod := podOf(o)
	return cmp.Or(fields.Text(pod, "serviceAccountName"), fields.Text(pod, "serviceAccount"), "default")
}

// rules returns the rules that the roles of the input grant to the pods of an object.
func rules(all []*object, o *object) []any {
	const group = "rbac.authorization.k8s.io"
	var out []any
	for _, binding := range all {
		if binding.gvk.Group != group || !strings.HasSuffix(binding.gvk.Kind, "RoleBinding") || !binds(binding, account(o), o.namespace()) {
			continue
		}
		ref := fields.Map(binding.value, "roleRef")
		for _, role := range all {
			here := role.is(group, "ClusterRole") || role.is(group, "Role") && role.namespace() == binding.namespace()
			if here && role.gvk.Kind == ref["kind"] && role.name() == ref["name"] {
				out = append(out, fields.List(role.value, "rules")...)
			}
		}
	}
	return out
}

// binds reports whether a binding is for a ServiceAccount. In a package for any
// namespace, the namespace of the subject is an expression, and no text.
func binds(binding *object, account, namespace string) bool {
	return slices.ContainsFunc(fields.List(binding.value, "subjects"), func(s any) bool {
		return fields.Text(s, "kind") == "ServiceAccount" && fields.Text(s, "name") == account && fields.Text(s, "namespace") == namespace
	})
}
