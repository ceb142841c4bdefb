package repositories

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Metrics of repositories.
var (
	ready = prometheus.NewDesc("lockstep_repository_ready",
		"Whether the content of the repository is fetched and offered: 0 no, 1 yes, 2 not known.", []string{"name", "namespace"}, nil)
	packagesOffered = prometheus.NewDesc("lockstep_repository_packages",
		"Number of packages that the repository offers.", []string{"name", "namespace"}, nil)
	versionsOffered = prometheus.NewDesc("lockstep_repository_versions",
		"Number of versions of packages that the repository offers.", []string{"name", "namespace"}, nil)
	fetchesTotal = prometheus.NewDesc("lockstep_repository_fetches_total",
		"How often this process fetched the repository: with new content, unmodified, or failed.", []string{"name", "namespace", "outcome"}, nil)
)

// metrics reads the repositories from the cache when they are collected: there is no series of a deleted one.
type metrics struct {
	reader client.Reader
	memory *memory
}

// Describe names the metrics.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	out <- ready
	out <- packagesOffered
	out <- versionsOffered
	out <- fetchesTotal
}

// Collect reads the repositories of both scopes.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, scope := range scopes {
		list := scope.NewPackageRepositoryList()
		if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
			continue // the cache has stopped, and with it this process
		}
		for _, repository := range list.GenericRepositories() {
			m.collect(out, repository)
		}
	}
}

func (m *metrics) collect(out chan<- prometheus.Metric, repository corev1alpha1.GenericPackageRepository) {
	send := func(desc *prometheus.Desc, typ prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, typ, value, append([]string{repository.GetName(), repository.GetNamespace()}, labels...)...)
	}
	status := repository.RepositoryStatus()
	send(ready, prometheus.GaugeValue, readyValue(status.Conditions))
	send(packagesOffered, prometheus.GaugeValue, float64(status.Packages))
	send(versionsOffered, prometheus.GaugeValue, float64(status.Versions))
	m.memory.Lock()
	defer m.memory.Unlock()
	if f := m.memory.fetches[keyOf(repository)]; f != nil {
		send(fetchesTotal, prometheus.CounterValue, float64(f.modified), "modified")
		send(fetchesTotal, prometheus.CounterValue, float64(f.unmodified), "unmodified")
		send(fetchesTotal, prometheus.CounterValue, float64(f.failed), "failed")
	}
}

func readyValue(conds []metav1.Condition) float64 {
	c := meta.FindStatusCondition(conds, corev1alpha1.ConditionReady)
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return 2
	case c.Status == metav1.ConditionTrue:
		return 1
	}
	return 0
}
