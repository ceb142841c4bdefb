package packages

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// metrics reads the packages from the cache when they are collected: there is no series of a deleted one.
type metrics struct {
	reader client.Reader
	memory *memory
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
	for _, pkg := range listPackages(m.reader) {
		m.collect(out, pkg)
	}
}

func (m *metrics) collect(out chan<- prometheus.Metric, pkg corev1alpha1.GenericPackage) {
	send := func(desc *prometheus.Desc, typ prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, typ, value, append([]string{pkg.GetName(), pkg.GetNamespace()}, labels...)...)
	}
	send(availability, prometheus.GaugeValue, available(pkg), imageOf(pkg))
	send(createdAt, prometheus.GaugeValue, float64(pkg.GetCreationTimestamp().Unix()))
	send(revision, prometheus.GaugeValue, float64(pkg.PackageStatus().Revision))
	m.memory.Lock()
	defer m.memory.Unlock()
	st := m.memory.states[keyOf(pkg)]
	if st == nil || st.uid != pkg.GetUID() {
		return
	}
	if st.loads > 0 {
		send(loadsTotal, prometheus.CounterValue, float64(st.loads))
	}
	if st.took > 0 {
		send(loadDuration, prometheus.GaugeValue, st.took.Seconds())
	}
}

func imageOf(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; pkg.PackageSpec().Image == "" && resolved != nil {
		return resolved.Image
	}
	return pkg.PackageSpec().Image
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
