package repositories

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/metrics"
)

// exporter reads the repositories from the cache when they are collected, so that deleted ones have
// no series.
type exporter struct{ reader client.Reader }

// Describe names the metrics.
func (m exporter) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out, metrics.Repositories, metrics.RepositoryReady)
}

// Collect reads the repositories of both scopes.
func (m exporter) Collect(out chan<- prometheus.Metric) {
	var states [3]int
	for _, scope := range corev1alpha1.Scopes() {
		list := scope.NewPackageRepositoryList()
		if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
			continue // the cache has stopped, and with it this process
		}
		for _, repository := range list.GenericRepositories() {
			ready := conditions.Value(repository.RepositoryStatus().Conditions, corev1alpha1.ConditionReady)
			states[int(ready)]++
			out <- metrics.RepositoryReady.Value(ready, repository.GetName(), repository.GetNamespace())
		}
	}

	for value, state := range [...]string{"failed", "ready", "unknown"} {
		out <- metrics.Repositories.Value(float64(states[value]), state)
	}
}
