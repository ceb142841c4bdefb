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
type exporter struct {
	reader client.Reader
	memory *memory
}

// Describe names the metrics.
func (m *exporter) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out, metrics.Repositories, metrics.RepositoryReady, metrics.RepositoryPackages, metrics.RepositoryVersions, metrics.RepositoryFetches)
}

// Collect reads the repositories of both scopes.
func (m *exporter) Collect(out chan<- prometheus.Metric) {
	var states [3]int
	for _, scope := range corev1alpha1.Scopes() {
		list := scope.NewPackageRepositoryList()
		if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
			continue // the cache has stopped, and with it this process
		}
		for _, repository := range list.GenericRepositories() {
			states[int(conditions.Value(repository.RepositoryStatus().Conditions, corev1alpha1.ConditionReady))]++
			m.collect(out, repository)
		}
	}

	for value, state := range [...]string{"failed", "ready", "unknown"} {
		out <- metrics.Repositories.Value(float64(states[value]), state)
	}
}

// collect sends the series of one repository.
func (m *exporter) collect(out chan<- prometheus.Metric, repository corev1alpha1.GenericPackageRepository) {
	send := func(metric *metrics.Metric, value float64, labels ...string) {
		out <- metric.Value(value, append([]string{repository.GetName(), repository.GetNamespace()}, labels...)...)
	}
	status := repository.RepositoryStatus()
	send(metrics.RepositoryReady, conditions.Value(status.Conditions, corev1alpha1.ConditionReady))
	send(metrics.RepositoryPackages, float64(status.Packages))
	send(metrics.RepositoryVersions, float64(status.Versions))
	if modified, unmodified, failed, known := m.memory.fetchesOf(repository); known {
		send(metrics.RepositoryFetches, float64(modified), "modified")
		send(metrics.RepositoryFetches, float64(unmodified), "unmodified")
		send(metrics.RepositoryFetches, float64(failed), "failed")
	}
}

// fetchesOf returns how often a repository was fetched. It does not send under the lock, because
// the receiver can be slow.
func (m *memory) fetchesOf(repository corev1alpha1.GenericPackageRepository) (modified, unmodified, failed int, known bool) {
	m.Lock()
	defer m.Unlock()
	f := m.fetches[keyOf(repository)]
	if f == nil {
		return 0, 0, 0, false
	}
	return f.modified, f.unmodified, f.failed, true
}
