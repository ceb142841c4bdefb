package gates

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/fields"
)

// Selected returns the objects whose pods a Service selects.
func Selected[O Object](all []O, service O) []O {
	selector := fields.Map(service.Content(), "spec", "selector")
	return Filter(all, func(o O) bool {
		labels := fields.Map(o.Content(), "spec", "template", "metadata", "labels")
		if is(o, "", "Pod") {
			labels = fields.Map(o.Content(), "metadata", "labels")
		}
		// Labels that are expressions of a template cannot be compared.
		for key, value := range selector {
			if s, isText := value.(string); !isText || fields.Text(labels, key) != s {
				return false
			}
		}
		return len(selector) > 0 && hasPods(o) && o.Home() == service.Home()
	})
}

// servers returns the objects whose pods serve the Service of a reference.
func servers[O Object](all []O, reference map[string]any) (out []O) {
	for _, service := range all {
		if is(service, "", "Service") && nameOf(service) == fields.Text(reference, "name") && service.Home() == fields.Text(reference, "namespace") {
			out = append(out, Selected(all, service)...)
		}
	}
	return out
}

// WebhookServers returns the objects whose pods serve the webhooks of a configuration.
func WebhookServers[O Object](all []O, config O) (out []O) {
	for _, w := range fields.List(config.Content(), "webhooks") {
		out = append(out, servers(all, fields.Map(w, "clientConfig", "service"))...)
	}
	return out
}

// Calls reports whether a command line or environment variable of an object has the host name of a
// Service. Within its namespace, the bare name suffices in a URL.
func Calls[O Object](o, service O) bool {
	// Most texts are excluded without a regular expression.
	texts := slices.DeleteFunc(CommandTexts(o), func(text string) bool { return !strings.Contains(text, nameOf(service)) })
	if len(texts) == 0 {
		return false
	}
	name := regexp.QuoteMeta(nameOf(service))
	host := `(^|[^-a-z0-9])` + name + `\.` + regexp.QuoteMeta(service.Home()) + `([^-a-z0-9]|$)`
	if o.Home() == service.Home() {
		host += `|://` + name + `([:/]|$)`
	}
	return slices.ContainsFunc(texts, regexp.MustCompile(host).MatchString)
}

// CommandTexts returns the command lines and environment of the containers of an object.
func CommandTexts[O Object](o O) []string {
	var out []string
	fields.Containers(o.Content(), func(_, _ string, c map[string]any) {
		for _, item := range slices.Concat(fields.List(c, "command"), fields.List(c, "args")) {
			out = append(out, fields.Text(item))
		}
		for _, e := range fields.List(c, "env") {
			out = append(out, fields.Text(e, "value"))
		}
	})

	return out
}

// Rejects reports whether the API server can refuse an object while the server of a webhook
// configuration is down: one of the webhooks fails closed, and its rules match the kind. Selectors
// are ignored.
func Rejects[O Object](config, o O) bool {
	kind := KindOf(o)
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind.Kind})
	for _, w := range fields.Maps(config.Content(), "webhooks") {
		if fields.Text(w, "failurePolicy") == "Ignore" {
			continue
		}
		for _, rule := range fields.Maps(w, "rules") {
			if grants(rule, "apiGroups", kind.Group, "*") && grants(rule, "resources", plural.Resource, "*", "*/*") {
				return true
			}
		}
	}
	return false
}
