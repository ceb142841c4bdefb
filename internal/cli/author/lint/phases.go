package lint

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// phaseRules are about the order of the rollout.
var phaseRules = []Rule{
	{
		"webhook-before-backend", Error,
		"A webhook that fails closed is rolled out before, or together with, the workload that answers it: until that is ready, the API server refuses what the webhook matches.",
		webhookBeforeBackend,
	},
	{
		"webhook-own-api-group", Error,
		"A webhook that fails closed matches the engine's own API group: while its backend is down, nothing can be rolled out or removed, this package included.",
		webhookOwnAPIGroup,
	},
	{
		"crd-and-resource-in-one-phase", Error,
		"A resource is rolled out before, or together with, the CustomResourceDefinition of its kind, which the API server does not know until that is established.",
		resourceBeforeDefinition,
	},
	{
		"namespace-after-use", Error,
		"An object is rolled out before, or together with, the Namespace that it is in.",
		namespaceAfterUse,
	},
	{
		"foreign-namespace", Warning,
		"A ClusterPackage has an object in a namespace that it does not bring: the installation fails where the namespace does not exist.",
		foreignNamespace,
	},
	{
		"empty-phase", Info,
		"A phase has no objects.",
		emptyPhase,
	},
}

// webhooks calls visit for every webhook that fails closed.
func (c *oneCase) webhooks(visit func(o *object, webhook map[string]any, field string)) {
	for _, o := range c.of(validatingKind, mutatingKind) {
		for _, webhook := range mappings(o.Object, "webhooks") {
			if text(webhook, "failurePolicy") != "Ignore" {
				visit(o, webhook, `webhooks[name="`+text(webhook, "name")+`"]`)
			}
		}
	}
}

func webhookBeforeBackend(c *oneCase, r reporter) {
	c.webhooks(func(o *object, webhook map[string]any, field string) {
		name := text(webhook, "clientConfig", "service", "name")
		if name == "" {
			return
		}
		service, backends := c.backends(text(webhook, "clientConfig", "service", "namespace"), name)
		if service == nil {
			return
		}
		for _, backend := range append(backends, service) {
			if backend.phase >= o.phase {
				r.at(o, field, "Put the webhook into a later phase than its backend, and probe that.",
					"it is in phase %q, and %s %s, which it needs, in phase %q", o.phaseName, backend.kind.Kind, backend.GetName(), backend.phaseName)
				return
			}
		}
	})
}

func webhookOwnAPIGroup(c *oneCase, r reporter) {
	c.webhooks(func(o *object, webhook map[string]any, field string) {
		for _, rule := range mappings(webhook, "rules") {
			groups, resources := texts(rule["apiGroups"]), texts(rule["resources"])
			group := ""
			switch {
			case slices.Contains(groups, corev1alpha1.GroupVersion.Group):
				group = corev1alpha1.GroupVersion.Group
			case slices.Contains(groups, "*") && (slices.Contains(resources, "*") || slices.Contains(resources, "*/*")):
				group = "all API groups"
			default:
				continue
			}
			if hasConditions(webhook) {
				continue
			}
			r.at(o, field, "Name the API groups that it is for, or exclude "+corev1alpha1.GroupVersion.Group+" by matchConditions, or set failurePolicy: Ignore.",
				"it matches %s", group)
			return
		}
	})
}

// hasConditions reports whether a webhook limits itself further; whether that
// leaves the engine out is its author's business.
func hasConditions(webhook map[string]any) bool {
	for _, key := range []string{"matchConditions", "namespaceSelector", "objectSelector"} {
		switch value := webhook[key].(type) {
		case []any:
			if len(value) > 0 {
				return true
			}
		case map[string]any:
			if len(value) > 0 {
				return true
			}
		}
	}
	return false
}

func resourceBeforeDefinition(c *oneCase, r reporter) {
	defined := map[schema.GroupKind]*object{}
	for _, o := range c.of(crdKind) {
		defined[schema.GroupKind{Group: text(o.Object, "spec", "group"), Kind: text(o.Object, "spec", "names", "kind")}] = o
	}
	for _, o := range c.objects {
		if crd := defined[o.kind]; crd != nil && crd.phase >= o.phase {
			r.at(o, "", "Put it into a later phase, and probe the definition for the condition Established.",
				"it is in phase %q, and the definition of its kind, %s, in phase %q", o.phaseName, crd.GetName(), crd.phaseName)
		}
	}
}

func namespaceAfterUse(c *oneCase, r reporter) {
	namespaces := map[string]*object{}
	for _, o := range c.of(namespaceKind) {
		namespaces[o.GetName()] = o
	}
	for _, o := range c.objects {
		if ns := namespaces[o.GetNamespace()]; ns != nil && o.GetNamespace() != "" && ns.phase >= o.phase {
			r.at(o, "metadata.namespace", "Put it into a later phase than the Namespace.",
				"it is in phase %q, and its Namespace in phase %q", o.phaseName, ns.phaseName)
		}
	}
}

// presentNamespaces exist in every cluster.
var presentNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

func foreignNamespace(c *oneCase, r reporter) {
	brought := slices.Clone(presentNamespaces)
	for _, o := range c.of(namespaceKind) {
		brought = append(brought, o.GetName())
	}
	for _, o := range c.objects {
		if ns := o.GetNamespace(); ns != "" && ns != c.namespace && !slices.Contains(brought, ns) {
			r.at(o, "metadata.namespace", "Bring the Namespace in an earlier phase, or say in the README that it has to exist.", "the package does not bring the namespace %q", ns)
		}
	}
}

func emptyPhase(c *oneCase, r reporter) {
	if !c.first() {
		return
	}
	for i, phase := range c.manifest.Spec.Phases {
		if !c.inAnyCase(func(o *object) bool { return o.phaseName == phase.Name }) {
			r.manifest(fmt.Sprintf("spec.phases[%d]", i), "Remove it, or add a test case in which it has objects.", "no object is in the phase %q", phase.Name)
		}
	}
}
