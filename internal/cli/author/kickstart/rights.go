package kickstart

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/author/fields"
	"lockstep.run/lockstep/internal/loader/presets"
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
		if targets := patched(all, byAccount[key][0]); len(targets) > 0 {
			for _, job := range patchers(byAccount[key]) {
				m.putBehind(job, targets)
			}
		}
	}
}

// putBehind moves a Job behind its targets. A probed APIService waits for the patch,
// so the Job is in its phase.
func (m *maker) putBehind(job *object, targets []*object) {
	last := slices.MaxFunc(targets, func(a, b *object) int { return presets.PhaseIndex(a.phase) - presets.PhaseIndex(b.phase) })
	phase := last.phase
	if phase == phaseAdmission {
		phase = phaseAdmissionPatch
	}
	earlier := presets.PhaseIndex(job.phase) >= 0 && presets.PhaseIndex(job.phase) < presets.PhaseIndex(phase)
	if earlier || job.hook != nil && phase == phaseAdmissionPatch {
		job.phase = phase
		m.note("%s may patch %s, as its rights say: it is in phase %s, behind it", job, last, phase)
	}
}

// patchers returns the Jobs of one ServiceAccount that patch, by words of their name or
// command line, such as "patch" besides one with "create"; else all.
func patchers(jobs []*object) []*object {
	out := filter(jobs, func(job *object) bool { return slices.ContainsFunc(append(commandTexts(job), job.name()), saysPatch) })
	if len(out) == 0 {
		return jobs
	}
	return out
}

var patchWords = []string{"patch", "patches", "inject", "update", "webhook", "webhooks", "crd", "crds"}

func saysPatch(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(patchWords, w) })
}

// commandTexts returns the command lines and environment of the containers of an object.
func commandTexts(o *object) []string {
	var out []string
	fields.Containers(o.value, func(_, _ string, c map[string]any) {
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
func patched(all []*object, o *object) (out []*object) {
	for _, rule := range rules(all, o) {
		if grants(rule, "verbs", "patch", "update", "*") {
			out = append(out, filter(all, func(target *object) bool {
				resource := patchable[target.kind()]
				named := len(fields.List(rule, "resourceNames")) == 0 || grants(rule, "resourceNames", target.name())
				return resource != "" && named && grants(rule, "apiGroups", target.gvk.Group, "*") && grants(rule, "resources", resource)
			})...)
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
	pod, _ := fields.PodSpec(o.value)
	return cmp.Or(fields.Text(pod, "serviceAccountName"), fields.Text(pod, "serviceAccount"), "default")
}

// rules returns the rules that the roles of the input grant to the pods of an object.
func rules(all []*object, o *object) (out []any) {
	const group = "rbac.authorization.k8s.io"
	for _, binding := range all {
		if binding.gvk.Group != group || !strings.HasSuffix(binding.gvk.Kind, "RoleBinding") || !binds(binding, account(o), o.namespace()) {
			continue
		}
		kind, name := fields.Text(binding.value, "roleRef", "kind"), fields.Text(binding.value, "roleRef", "name")
		for _, role := range all {
			if role.is(group, kind) && role.name() == name && (kind == "ClusterRole" || kind == "Role" && role.namespace() == binding.namespace()) {
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

// dependents moves workloads behind the package's own resources if they call a Service
// whose pods a controller creates from those resources: before, they may never become
// ready.
func (m *maker) dependents(all []*object) {
	resources := filter(all, func(o *object) bool { return o.phase == phaseResources })
	if len(resources) == 0 {
		return
	}
	generated := filter(all, func(o *object) bool { // Services without pods in the package
		return o.is("", "Service") && len(fields.Map(o.value, "spec", "selector")) > 0 && len(selected(all, o)) == 0
	})
	webhooks := webhookServers(all)
	for _, o := range all {
		if o.gvk.Group != "apps" || o.phase != phaseDeploy || slices.Contains(webhooks, o) || controls(all, o, resources) {
			continue
		}
		if i := slices.IndexFunc(generated, func(s *object) bool { return calls(o, s) }); i >= 0 {
			o.phase = phaseDependents
			m.note("%s calls %s, which gets its pods from resources of the package: it is in phase %s, behind them", o, generated[i], phaseDependents)
		}
	}
}

func filter(all []*object, keep func(*object) bool) []*object {
	return slices.DeleteFunc(slices.Clone(all), func(o *object) bool { return !keep(o) })
}

// selected returns the objects whose pods a Service selects.
func selected(all []*object, service *object) []*object {
	return filter(all, func(o *object) bool {
		labels := fields.Map(o.value, "spec", "template", "metadata", "labels")
		if o.is("", "Pod") {
			labels = fields.Map(o.value, "metadata", "labels")
		}
		for key, value := range fields.Map(service.value, "spec", "selector") {
			if s, isText := value.(string); !isText || fields.Text(labels, key) != s {
				return false
			}
		}
		return plurals[o.gvk.Kind] != "" && o.namespace() == service.namespace()
	})
}

// webhookServers returns the workloads that serve webhooks of the package.
func webhookServers(all []*object) (out []*object) {
	for _, config := range all {
		for _, w := range fields.List(config.value, "webhooks") {
			name, namespace := fields.Text(w, "clientConfig", "service", "name"), fields.Text(w, "clientConfig", "service", "namespace")
			for _, service := range all {
				if service.is("", "Service") && service.name() == name && service.namespace() == namespace {
					out = append(out, selected(all, service)...)
				}
			}
		}
	}
	return out
}

// controls reports whether an object may watch one of the resources.
func controls(all []*object, o *object, resources []*object) bool {
	return slices.ContainsFunc(rules(all, o), func(rule any) bool {
		return grants(rule, "verbs", "watch", "*") && slices.ContainsFunc(resources, func(r *object) bool { return grants(rule, "apiGroups", r.gvk.Group, "*") })
	})
}

// calls reports whether a command line or environment variable of an object has the host
// name of a Service.
func calls(o, service *object) bool {
	name := regexp.QuoteMeta(service.name())
	host := `(^|[^-a-z0-9])` + name + `\.` + regexp.QuoteMeta(service.namespace()) + `([^-a-z0-9]|$)`
	if o.namespace() == service.namespace() {
		host += `|://` + name + `([:/]|$)`
	}
	return slices.ContainsFunc(commandTexts(o), regexp.MustCompile(host).MatchString)
}
