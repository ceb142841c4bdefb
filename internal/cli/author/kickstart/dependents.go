package kickstart

import (
	"regexp"
	"slices"

	"lockstep.run/lockstep/internal/cli/author/fields"
)

// dependents moves workloads behind the package's own resources if they call a Service
// whose pods a controller creates from those resources: before, they may never become
// ready.
func (m *maker) dependents(all []*object) {
	var resources []*object
	for _, o := range all {
		if o.phase == phaseResources {
			resources = append(resources, o)
		}
	}
	if len(resources) == 0 {
		return
	}
	var generated []*object // Services without pods in the package
	for _, service := range all {
		if service.is("", "Service") && len(fields.Map(service.value, "spec", "selector")) > 0 && len(selected(all, service)) == 0 {
			generated = append(generated, service)
		}
	}
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

// selected returns the objects whose pods a Service selects.
func selected(all []*object, service *object) []*object {
	var out []*object
	for _, o := range all {
		labels := fields.Map(o.value, "spec", "template", "metadata", "labels")
		if o.is("", "Pod") {
			labels = fields.Map(o.value, "metadata", "labels")
		}
		matches := plurals[o.gvk.Kind] != "" && o.namespace() == service.namespace()
		for key, value := range fields.Map(service.value, "spec", "selector") {
			s, isText := value.(string)
			matches = matches && isText && fields.Text(labels, key) == s
		}
		if matches {
			out = append(out, o)
		}
	}
	return out
}

// webhookServers returns the workloads that serve webhooks of the package.
func webhookServers(all []*object) []*object {
	var out []*object
	for _, config := range all {
		for _, w := range fields.List(config.value, "webhooks") {
			ref := fields.Map(w, "clientConfig", "service")
			for _, service := range all {
				if service.is("", "Service") && service.name() == fields.Text(ref, "name") && service.namespace() == fields.Text(ref, "namespace") {
					out = append(out, selected(all, service)...)
				}
			}
		}
	}
	return out
}

// controls reports whether an object may watch one of the resources.
func controls(all []*object, o *object, resources []*object) bool {
	for _, rule := range rules(all, o) {
		for _, r := range resources {
			if grants(rule, "apiGroups", r.gvk.Group, "*") && grants(rule, "verbs", "watch", "*") {
				return true
			}
		}
	}
	return false
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
