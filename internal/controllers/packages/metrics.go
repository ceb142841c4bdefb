package packages

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/metrics"
	"lockstep.run/lockstep/internal/kube/summary"
)

// exporter reads the packages from the cache when they are collected, so that deleted ones have no
// series.
type exporter struct {
	reader client.Reader
	// taken returns how often a package was loaded, and how long the last time took.
	taken func(corev1alpha1.GenericPackage) (loads int, took time.Duration)
}

// Describe names the metrics.
func (m *exporter) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out, metrics.PackageAvailability, metrics.PackageCreated, metrics.PackageLoadDuration, metrics.PackageLoads, metrics.PackageRevision,
		metrics.PackageSummary, metrics.PackageBlockedSince, metrics.PackageDeletingSince,
		metrics.Packages, metrics.Targets, metrics.Dependencies)
}

// Collect reads the packages of both scopes.
func (m *exporter) Collect(out chan<- prometheus.Metric) {
	c := newCounts()
	packages, err := choice.ListPackages(context.Background(), m.reader, "")
	if err != nil {
		return // no series, rather than none of packages
	}
	for _, pkg := range packages {
		word := summary.Of(pkg)
		c.count(pkg, word)
		collectState(out, pkg, word)
		m.collectRest(out, pkg)
	}
	c.collect(out)
}

// counts are the numbers of all packages.
type counts struct {
	summaries    map[summary.Summary]int
	targets      map[targets.Ref]string
	dependencies map[string]int
}

// newCounts starts all series at 0, so that alerts distinguish "none" from "not reported".
func newCounts() *counts {
	c := &counts{
		summaries: map[summary.Summary]int{}, targets: map[targets.Ref]string{},
		dependencies: map[string]int{"satisfied": 0, "waiting": 0, "unsatisfied": 0},
	}
	for _, word := range summary.All() {
		c.summaries[word] = 0
	}
	return c
}

// count adds one package.
func (c *counts) count(pkg corev1alpha1.GenericPackage, word summary.Summary) {
	c.summaries[word]++
	for i := range pkg.PackageStatus().Dependencies {
		c.dependencies[dependencyState(&pkg.PackageStatus().Dependencies[i])]++
	}
	if remote(pkg) {
		ref := targets.RefOf(pkg.GetNamespace(), pkg.PackageSpec().TargetRef)
		// If packages disagree about one target, the ones that do not reach it win.
		if state := connectionOf(pkg); c.targets[ref] == "" || state == "away" {
			c.targets[ref] = state
		}
	}
}

// dependencyState returns the value of the label for a dependency.
func dependencyState(dependency *corev1alpha1.DependencyStatus) string {
	c := meta.FindStatusCondition(dependency.Conditions, corev1alpha1.ConditionSatisfied)
	switch {
	case c != nil && c.Status == metav1.ConditionTrue:
		return "satisfied"
	case c == nil || c.Reason == corev1alpha1.ReasonNotAvailable || c.Reason == corev1alpha1.ReasonInstalledByThisPackage || c.Reason == corev1alpha1.ReasonWaitingForDependencies:
		return "waiting"
	}
	return "unsatisfied"
}

// connectionOf returns the value of the label for the target of a package.
func connectionOf(pkg corev1alpha1.GenericPackage) string {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionTargetConnected)
	switch {
	case c == nil || c.Reason == corev1alpha1.ReasonTargetConnecting || c.Status == metav1.ConditionUnknown:
		return "unknown"
	case c.Status == metav1.ConditionTrue:
		return "connected"
	}
	return "away"
}

// collect sends all series.
func (c *counts) collect(out chan<- prometheus.Metric) {
	for word, n := range c.summaries {
		out <- metrics.Packages.Value(float64(n), string(word))
	}

	for state, n := range c.dependencies {
		out <- metrics.Dependencies.Value(float64(n), state)
	}

	states := map[string]int{"connected": 0, "away": 0, "unknown": 0}
	for _, state := range c.targets {
		states[state]++
	}

	for state, n := range states {
		out <- metrics.Targets.Value(float64(n), state)
	}
}

// collectState collects the state of a package.
func collectState(out chan<- prometheus.Metric, pkg corev1alpha1.GenericPackage, word summary.Summary) {
	name, namespace := pkg.GetName(), pkg.GetNamespace()
	out <- metrics.PackageAvailability.Value(conditions.Value(*pkg.StatusConditions(), corev1alpha1.ConditionAvailable), name, namespace, imageOf(pkg))
	out <- metrics.PackageSummary.Value(1, name, namespace, string(word), pkg.PackageStatus().InstalledVersion())
	since, reason := blockedSince(pkg, word)
	if since.IsZero() {
		return
	}

	phase := ""
	if blocking := pkg.PackageStatus().Blocking; len(blocking) > 0 {
		phase = blocking[0].Phase
	}

	metric := metrics.PackageBlockedSince
	if word == summary.Deleting {
		metric = metrics.PackageDeletingSince
	}

	out <- metric.Value(float64(since.Unix()), name, namespace, phase, reason)
}

// blockedSince returns since when a package is blocked, and by what; zero if it is not.
func blockedSince(pkg corev1alpha1.GenericPackage, word summary.Summary) (since time.Time, reason string) {
	cause := summary.Cause(pkg, word)
	switch word {
	case summary.Available, summary.Paused, summary.Pending, summary.Awaiting:
		return time.Time{}, ""
	case summary.Deleting:
		return pkg.GetDeletionTimestamp().Time, cmp.Or(cause.Reason, corev1alpha1.ReasonTearingDown)
	case summary.Progressing:
		if len(pkg.PackageStatus().Blocking) == 0 {
			return time.Time{}, "" // it is on its way
		}
	}

	// Ready keeps the time of the first problem, regardless of the present cause.
	if ready := summary.Current(pkg, corev1alpha1.ConditionReady); ready.Type != "" && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time, cause.Reason
	}
	return cause.LastTransitionTime.Time, cause.Reason
}

// collectRest collects the further series of a package.
func (m *exporter) collectRest(out chan<- prometheus.Metric, pkg corev1alpha1.GenericPackage) {
	name, namespace := pkg.GetName(), pkg.GetNamespace()
	out <- metrics.PackageCreated.Value(float64(pkg.GetCreationTimestamp().Unix()), name, namespace)
	out <- metrics.PackageRevision.Value(float64(pkg.PackageStatus().Revision), name, namespace)
	loads, took := m.taken(pkg)
	if loads > 0 {
		out <- metrics.PackageLoads.Value(float64(loads), name, namespace)
	}
	if took > 0 {
		out <- metrics.PackageLoadDuration.Value(took.Seconds(), name, namespace)
	}
}

// imageOf returns the image of a package: the spec's, or the image that a version was resolved to.
func imageOf(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; pkg.PackageSpec().Image == "" && resolved != nil {
		return resolved.Image
	}
	return pkg.PackageSpec().Image
}
