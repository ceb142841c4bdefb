package kickstart

import (
	"slices"
	"strings"
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
		if selector, _ := dig(service.value, "spec", "selector").(map[string]any); service.is("", "Service") && len(selector) > 0 && len(selected(all, service)) == 0 {
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
	selector, _ := dig(service.value, "spec", "selector").(map[string]any)
	var out []*object
	for _, o := range all {
		labels, _ := dig(o.value, "spec", "template", "metadata", "labels").(map[string]any)
		if o.is("", "Pod") {
			labels, _ = dig(o.value, "metadata", "labels").(map[string]any)
		}
		matches := plurals[o.gvk.Kind] != "" && o.namespace() == service.namespace()
		for key, value := range selector {
			s, isText := value.(string)
			matches = matches && isText && text(labels, key) == s
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
		webhooks, _ := config.value["webhooks"].([]any)
		for _, w := range webhooks {
			for _, service := range all {
				if service.is("", "Service") && service.name() == text(w, "clientConfig", "service", "name") && service.namespace() == text(w, "clientConfig", "service", "namespace") {
					out = append(out, selected(all, service)...)
				}
			}
		}
	}
	return out
}

// controls reports whether an object may be the controller of one of the resources: it
// may watch them.
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
	host := service.name() + "." + service.namespace()
	return slices.ContainsFunc(commandTexts(o), func(s string) bool {
		for rest := s; ; {
			_, after, found := strings.Cut(rest, host)
			if !found {
				break
			}
			before := rest[:len(rest)-len(after)-len(host)]
			if !inName(before, len(before)-1) && !inName(after, 0) {
				return true
			}
			rest = after
		}
		short := "://" + service.name()
		return o.namespace() == service.namespace() && (strings.Contains(s, short+":") || strings.Contains(s, short+"/") || strings.HasSuffix(s, short))
	})
}

// inName reports whether a text has a character of a host name at an index.
func inName(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}
