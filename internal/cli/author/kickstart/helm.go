package kickstart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
)

// Annotations and labels of Helm, https://helm.sh/docs/topics/charts_hooks.
const (
	hookAnnotation   = "helm.sh/hook"
	weightAnnotation = "helm.sh/hook-weight"
	policyAnnotation = "helm.sh/resource-policy"
	chartLabel       = "helm.sh/chart"
	managedByLabel   = "app.kubernetes.io/managed-by"
)

// hook holds the events that make Helm create an object.
type hook struct {
	events []string
	weight int
}

// helm replaces annotations of Helm, and returns the remaining objects.
func (m *maker) helm(all []*object) []*object {
	var kept []*object
	for _, o := range all {
		if o.readHelm(m); o.hook == nil || m.keepsHook(o) {
			kept = append(kept, o)
		}
	}
	return kept
}

// readHelm reads and removes the annotations and labels of Helm.
func (o *object) readHelm(m *maker) {
	if events, ok := o.annotation(hookAnnotation); ok {
		o.hook = &hook{}
		for event := range strings.SplitSeq(events, ",") {
			o.hook.events = append(o.hook.events, strings.TrimSpace(event))
		}
		weight, _ := o.annotation(weightAnnotation)
		o.hook.weight, _ = strconv.Atoi(weight)
	}

	if policy, _ := o.annotation(policyAnnotation); policy == "keep" {
		o.annotate(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
	}
	if chart := fields.Text(o.value, "metadata", "labels", chartLabel); chart != "" {
		m.charts[chart] = true
	}

	o.dropMeta("annotations", func(key string, _ any) bool {
		return strings.HasPrefix(key, "helm.sh/") || strings.HasPrefix(key, "meta.helm.sh/")
	})
	o.dropMeta("labels", func(key string, value any) bool { return key == managedByLabel && value == "Helm" })
}

// at reports whether the hook runs at one of the events.
func (h *hook) at(events ...string) bool {
	return slices.ContainsFunc(events, func(e string) bool { return slices.Contains(h.events, e) })
}

// keepsHook reports whether a hook becomes an object of the package. A hook that runs during an
// installation does. Tests, deletions and rollbacks have no counterpart.
func (m *maker) keepsHook(o *object) bool {
	switch {
	case o.hook.at("pre-install", "post-install", "crd-install", "pre-upgrade", "post-upgrade"):
		return true
	case o.hook.at("test", "test-success", "test-failure"):
		m.note("%s is a test of the chart and was left out", o)
	default:
		m.note("%s runs at %s in Helm, which has no counterpart here: it was left out", o, strings.Join(o.hook.events, ", "))
	}
	return false
}

// before reports whether the hook runs before the chart's ordinary objects.
func (h *hook) before() bool {
	return h.at("pre-install") || h.at("pre-upgrade") && !h.at("post-install")
}

// runs reports whether an object runs only once.
func (o *object) runs() bool { return o.is("batch", "Job") || o.is("", "Pod") }

// hookPhases puts hooks that run, and their ConfigMaps and Secrets, into phases of their
// own by their weights.
func (m *maker) hookPhases(all []*object) {
	weights := map[bool][]int{}
	for _, o := range all {
		if o.hook != nil && o.runs() {
			weights[o.hook.before()] = append(weights[o.hook.before()], o.hook.weight)
		}
	}

	for before := range weights {
		slices.Sort(weights[before])
		weights[before] = slices.Compact(weights[before])
	}

	for _, o := range all {
		if o.hook == nil || !o.runs() && !o.is("", "ConfigMap") && !o.is("", "Secret") {
			continue
		}
		before := o.hook.before()
		n := len(weights[before])
		if n == 0 {
			continue // it runs nothing, so it is an ordinary object
		}
		o.phase = phasePostInstall
		if before {
			o.phase = phasePreInstall
		}

		if n > 1 {
			// Data precedes the first hook that runs at its weight or later.
			i, _ := slices.BinarySearch(weights[before], o.hook.weight)
			o.phase += fmt.Sprintf("-%d", min(i+1, n))
		}

		if o.runs() {
			o.annotate(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate)
			m.note("%s is a hook of Helm (%s): it becomes an ordinary object in phase %s, which runs during the installation, and again when it changes", o, strings.Join(o.hook.events, ", "), o.phase)
		}
	}
}
