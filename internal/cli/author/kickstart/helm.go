package kickstart

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Annotations and values of Helm,
// https://helm.sh/docs/topics/charts_hooks.
const (
	hookAnnotation     = "helm.sh/hook"
	weightAnnotation   = "helm.sh/hook-weight"
	policyAnnotation   = "helm.sh/resource-policy"
	helmAnnotations    = "helm.sh/"
	releaseAnnotations = "meta.helm.sh/"
	chartLabel         = "helm.sh/chart"
	managedByLabel     = "app.kubernetes.io/managed-by"
)

// hook is what Helm does with an object.
type hook struct {
	events []string
	weight int
}

// helm turns what Helm reads from annotations into what this engine does, and
// returns the objects that are left.
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
	if chart := text(o.value, "metadata", "labels", chartLabel); chart != "" {
		m.charts[chart] = true
	}
	o.dropMeta("annotations", func(key string, _ any) bool {
		return strings.HasPrefix(key, helmAnnotations) || strings.HasPrefix(key, releaseAnnotations)
	})
	o.dropMeta("labels", func(key string, value any) bool { return key == managedByLabel && value == "Helm" })
}

// keepsHook reports whether a hook becomes an object of the package: one that runs
// around an installation does. Nothing stands for a test, or for what runs at a
// deletion or a rollback.
func (m *maker) keepsHook(o *object) bool {
	has := func(events ...string) bool {
		return slices.ContainsFunc(o.hook.events, func(e string) bool { return slices.Contains(events, e) })
	}
	switch {
	case has("pre-install", "post-install", "crd-install", "pre-upgrade", "post-upgrade"):
		return true
	case has("test", "test-success", "test-failure"):
		m.note("%s is a test of the chart and was left out", o)
	default:
		m.note("%s runs at %s in Helm, which nothing here stands for; it was left out", o, strings.Join(o.hook.events, ", "))
	}
	return false
}

// before reports whether the hook runs before the chart's ordinary objects.
func (h *hook) before() bool {
	return slices.Contains(h.events, "pre-install") || slices.Contains(h.events, "pre-upgrade") && !slices.Contains(h.events, "post-install")
}

// runs reports whether an object does something once, rather than being there.
func (o *object) runs() bool {
	kind := o.kind()
	return kind.Kind == "Job" && kind.Group == "batch" || kind.Kind == "Pod" && kind.Group == ""
}

// hookPhases puts hooks that run into phases of their own, by their weights.
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
		if o.hook == nil || !o.runs() && !hookData(o) {
			continue
		}
		before := o.hook.before()
		name := phasePostInstall
		if before {
			name = phasePreInstall
		}
		o.phase = name
		if n := len(weights[before]); n > 1 {
			// What is not run is there before the first that runs at its weight or later.
			i := slices.IndexFunc(weights[before], func(w int) bool { return w >= o.hook.weight })
			o.phase = fmt.Sprintf("%s-%d", name, cmp.Or(i, 0)+1)
			if i < 0 {
				o.phase = fmt.Sprintf("%s-%d", name, n)
			}
		} else if n == 0 {
			o.phase = "" // nothing runs, so it is an ordinary object
			continue
		}
		if o.runs() {
			o.annotate(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate)
			m.note("%s is a hook of Helm (%s): it is an ordinary object in phase %s, which runs at the installation, and again when it changes", o, strings.Join(o.hook.events, ", "), o.phase)
		}
	}
}

// hookData reports whether an object is what hooks read.
func hookData(o *object) bool {
	kind := o.kind()
	return kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret")
}
