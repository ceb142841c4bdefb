package kickstart

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
		targets := patched(all, jobs[0])
		if len(targets) == 0 {
			continue
		}
		for _, job := range patchers(jobs) {
			m.putBehind(job, targets)
		}
	}
}

// putBehind moves a Job behind its targets. A probed APIService waits for the patch,
// so the Job is in its phase.
func (m *maker) putBehind(job *object, targets []*object) {
	last := targets[0]
	for _, t := range targets {
		if slices.Index(phaseOrder, t.phase) > slices.Index(phaseOrder, last.phase) {
			last = t
		}
	}
	phase := last.phase
	if phase == phaseAdmission {
		phase = phaseAdmissionPatch
	}
	earlier := slices.Index(phaseOrder, job.phase) < slices.Index(phaseOrder, phase)
	after := job.hook != nil && phase == phaseAdmissionPatch
	if earlier && slices.Contains(phaseOrder, job.phase) || after {
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

// commandTexts returns the command lines and environment of the containers of an object.
func commandTexts(o *object) []string {
	var out []string
	pod := podOf(o)
	for _, field := range []string{"initContainers", "containers"} {
		containers, _ := pod[field].([]any)
		for _, c := range containers {
			for _, list := range []string{"command", "args"} {
				items, _ := dig(c, list).([]any)
				for _, item := range items {
					if s, ok := item.(string); ok {
						out = append(out, s)
					}
				}
			}
			env, _ := dig(c, "env").([]any)
			for _, e := range env {
				out = append(out, text(e, "value"))
			}
		}
	}
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
			if resource == "" || !grants(rule, "apiGroups", target.gvk.Group, "*") || !grants(rule, "resources", resource) {
				continue
			}
			if names, _ := dig(rule, "resourceNames").([]any); len(names) == 0 || slices.Contains(names, any(target.name())) {
				out = append(out, target)
			}
		}
	}
	return out
}

// grants reports whether a field of a rule has one of the values.
func grants(rule any, field string, values ...string) bool {
	list, _ := dig(rule, field).([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		s, _ := item.(string)
		return slices.Contains(values, s)
	})
}

// account is the ServiceAccount of an object's pods.
func account(o *object) string {
	if name := text(podOf(o), "serviceAccountName"); name != "" {
		return name
	}
	if name := text(podOf(o), "serviceAccount"); name != "" {
		return name
	}
	return "default"
}

// rules returns the rules that the roles of the input grant to the pods of an object.
func rules(all []*object, o *object) []any {
	const group = "rbac.authorization.k8s.io"
	var out []any
	for _, binding := range all {
		if binding.gvk.Group != group || !strings.HasSuffix(binding.gvk.Kind, "RoleBinding") || !binds(binding, account(o), o.namespace()) {
			continue
		}
		for _, role := range all {
			here := role.is(group, "ClusterRole") || role.is(group, "Role") && role.namespace() == binding.namespace()
			if here && role.gvk.Kind == text(binding.value, "roleRef", "kind") && role.name() == text(binding.value, "roleRef", "name") {
				list, _ := role.value["rules"].([]any)
				out = append(out, list...)
			}
		}
	}
	return out
}

// binds reports whether a binding is for a ServiceAccount. In a package for any
// namespace, the namespace of the subject is an expression, and no text.
func binds(binding *object, account, namespace string) bool {
	subjects, _ := binding.value["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(s any) bool {
		return text(s, "kind") == "ServiceAccount" && text(s, "name") == account && text(s, "namespace") == namespace
	})
}
