package packages

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Metrics of packages, under the names of Package Operator.
var (
	availability = prometheus.NewDesc("package_operator_package_availability",
		"Whether the package is available: 0 no, 1 yes, 2 not known.", []string{"pko_name", "pko_namespace", "image"}, nil)
	createdAt = prometheus.NewDesc("package_operator_package_created_timestamp_seconds",
		"When the package was created, in seconds since 1970.", []string{"pko_name", "pko_namespace"}, nil)
	loadDuration = prometheus.NewDesc("package_operator_package_load_duration_seconds",
		"How long the last successful load of the package took.", []string{"pko_name", "pko_namespace"}, nil)
	loadsTotal = prometheus.NewDesc("lockstep_package_loads_total",
		"How often this process pulled and rendered the package.", []string{"pko_name", "pko_namespace"}, nil)
	revision = prometheus.NewDesc("package_operator_package_revision",
		"Number of the current revision of the package.", []string{"pko_name", "pko_namespace"}, nil)
)

// metrics reads the packages from the cache when it is asked. So there is no
// series of a package that is gone, and none costs memory in between.
type metrics struct {
	reader client.Reader
	// leading is set while this process reconciles: a standby has no cache.
	leading atomic.Bool

	mu     sync.Mutex
	loads  map[types.UID]time.Duration
	counts map[types.UID]int
}

// began counts a load.
func (m *metrics) began(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[types.UID]int{}
	}
	m.counts[uid]++
}

// loaded notes how long a load took.
func (m *metrics) loaded(uid types.UID, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loads == nil {
		m.loads = map[types.UID]time.Duration{}
	}
	m.loads[uid] = took
}

func (m *metrics) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.loads, uid)
	delete(m.counts, uid)
}

// Describe names the metrics.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	out <- availability
	out <- createdAt
	out <- loadDuration
	out <- loadsTotal
	out <- revision
}

// Collect reads the packages of both scopes.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	if !m.leading.Load() {
		return
	}
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		if err := m.reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		for _, pkg := range list.GenericPackages() {
			m.collect(out, pkg)
		}
	}
}

func (m *metrics) collect(out chan<- prometheus.Metric, pkg corev1alpha1.GenericPackage) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{pkg.GetName(), pkg.GetNamespace()}, labels...)...)
	}
	gauge(availability, available(pkg), pkg.PackageSpec().Image)
	gauge(createdAt, float64(pkg.GetCreationTimestamp().Unix()))
	gauge(revision, float64(pkg.PackageStatus().Revision))
	m.mu.Lock()
	took, ok := m.loads[pkg.GetUID()]
	count := m.counts[pkg.GetUID()]
	m.mu.Unlock()
	if count > 0 {
		out <- prometheus.MustNewConstMetric(loadsTotal, prometheus.CounterValue, float64(count), pkg.GetName(), pkg.GetNamespace())
	}
	if ok {
		gauge(loadDuration, took.Seconds())
	}
}

func available(pkg corev1alpha1.GenericPackage) float64 {
	c := meta.FindStatusCondition(*pkg.StatusConditions(), corev1alpha1.ConditionAvailable)
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return 2
	case c.Status == metav1.ConditionTrue:
		return 1
	}
	return 0
}
