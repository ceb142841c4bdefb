package packages

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/metricstest"
	"lockstep.run/lockstep/test/require"
)

// cached is a cache of packages.
type cached struct {
	client.Reader
	packages        []corev1alpha1.Package
	clusterPackages []corev1alpha1.ClusterPackage
}

func (c *cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1alpha1.PackageList:
		l.Items = c.packages
	case *corev1alpha1.ClusterPackageList:
		l.Items = c.clusterPackages
	}
	return nil
}

// withNames leaves out the series without names.
func withNames(values map[string]float64) map[string]float64 {
	for name := range values {
		for _, prefix := range []string{"lockstep_packages ", "lockstep_targets ", "lockstep_dependencies "} {
			if strings.HasPrefix(name, prefix) {
				delete(values, name)
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	shop := 2
	m := &exporter{taken: func(pkg corev1alpha1.GenericPackage) (int, time.Duration) {
		if pkg.GetName() != "shop" {
			return 0, 0
		}
		return shop, time.Duration(shop) * 750 * time.Millisecond
	}, reader: &cached{
		packages: []corev1alpha1.Package{*unpackedPackage(func(p *corev1alpha1.Package) {
			p.CreationTimestamp = metav1.Time{Time: time.Unix(1000, 0)}
			p.Generation, p.Status.Revision, p.Status.CurrentVersion = 0, 3, "1.2.3"
			p.Status.Conditions = []metav1.Condition{conditionOf("Available", "True", "X"), conditionOf("Ready", "True", "X")}
		})},
		clusterPackages: []corev1alpha1.ClusterPackage{{ObjectMeta: metav1.ObjectMeta{Name: "big", UID: "other"}}},
	}}
	want := map[string]float64{
		"package_operator_package_availability registry.test/shop:v1 shop team": 1,
		"package_operator_package_created_timestamp_seconds shop team":          1000,
		"package_operator_package_load_duration_seconds shop team":              1.5,
		"package_operator_package_revision shop team":                           3,
		"lockstep_package_loads_total shop team":                                2,
		"lockstep_package_summary shop team Available 1.2.3":                    1,
		"package_operator_package_availability  big ":                           2,
		"package_operator_package_created_timestamp_seconds big ":               float64((&metav1.Time{}).Unix()),
		"package_operator_package_revision big ":                                0,
		"lockstep_package_summary big  Pending ":                                1,
	}
	require.Equal(t, want, withNames(metricstest.Values(t, m)))
	shop = 0
	delete(want, "package_operator_package_load_duration_seconds shop team")
	delete(want, "lockstep_package_loads_total shop team")
	require.Equal(t, want, withNames(metricstest.Values(t, m)))
}

// While a package is blocked, exactly one series reports since when, and by what.
func TestMetricsOfBlockedPackages(t *testing.T) {
	t.Parallel()
	at := func(c metav1.Condition, seconds int64) metav1.Condition {
		c.LastTransitionTime, c.ObservedGeneration = metav1.Time{Time: time.Unix(seconds, 0)}, 2
		return c
	}
	blocking := []corev1alpha1.BlockingObject{{Kind: "Deployment", Name: "web", Phase: "app"}, {Kind: "Deployment", Name: "more", Phase: "last"}}
	for _, tc := range []struct {
		reason     string
		conditions []metav1.Condition
		blocking   []corev1alpha1.BlockingObject
		change     func(*corev1alpha1.Package)
		want       string
	}{
		{"available", []metav1.Condition{at(conditionOf("Ready", "True", "Available"), 5)}, nil, nil, ""},
		{"on its way", []metav1.Condition{at(conditionOf("Ready", "False", "Progressing"), 5)}, nil, nil, ""},
		{"paused", []metav1.Condition{at(conditionOf("Ready", "False", "X"), 5), at(conditionOf("Paused", "True", "Paused"), 6)}, blocking, nil, ""},
		{"waits for an object", []metav1.Condition{at(conditionOf("Ready", "False", "ProbeFailure"), 5)}, blocking, nil,
			"lockstep_package_blocked_since_seconds app shop team ProbeFailure 5"},
		{"since the first trouble", []metav1.Condition{at(conditionOf("Ready", "False", "X"), 5), at(conditionOf("Stalled", "True", "CollisionDetected"), 9)},
			blocking, nil, "lockstep_package_blocked_since_seconds app shop team CollisionDetected 5"},
		{"invalid", []metav1.Condition{at(conditionOf("Invalid", "True", "ConfigInvalid"), 7)}, nil, nil,
			"lockstep_package_blocked_since_seconds  shop team ConfigInvalid 7"},
		{"being deleted", []metav1.Condition{at(conditionOf("Ready", "False", "X"), 5)}, blocking, deletedAt(11),
			"lockstep_package_deleting_since_seconds app shop team TearingDown 11"},
		{"its deletion is held", []metav1.Condition{at(conditionOf("DeletionHeld", "True", "Required"), 12)}, nil, deletedAt(11),
			"lockstep_package_deleting_since_seconds  shop team Required 11"},
	} {
		pkg := unpackedPackage(func(p *corev1alpha1.Package) {
			p.Generation, p.Status.Conditions, p.Status.Blocking = 2, tc.conditions, tc.blocking
			if tc.change != nil {
				tc.change(p)
			}
		})
		got := ""
		for name, value := range metricstest.Values(t, &exporter{taken: once, reader: &cached{packages: []corev1alpha1.Package{*pkg}}}) {
			if strings.Contains(name, "_since_seconds ") {
				got += fmt.Sprintf("%s %v", name, value)
			}
		}
		require.Equal(t, tc.want, got, tc.reason)
	}
}

func deletedAt(seconds int64) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(seconds, 0)} }
}

// Each package has at most seven series with bounded labels, for any status.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	c := &cached{}
	for i := range 10 {
		pkg := corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprint(i))}}
		pkg.Spec.Image = strings.Repeat("x", 4096)
		pkg.Status.CurrentVersion = strings.Repeat("\"}\n9", 1024) + string(rune(i)) + "\xff"
		pkg.Status.Conditions = []metav1.Condition{conditionOf("Invalid", "True", strings.Repeat("r", 2000))}
		pkg.Status.Blocking = []corev1alpha1.BlockingObject{{Phase: strings.Repeat("p", 2000)}}
		c.packages = append(c.packages, pkg)
	}
	values := withNames(metricstest.Values(t, &exporter{taken: once, reader: c}))
	if most := 7 * len(c.packages); len(values) > most {
		t.Errorf("%d series, want at most %d", len(values), most)
	}
	for name := range values {
		if len(name) > 5*limits.MetricLabelBytes {
			t.Fatalf("a series has %d bytes: %s", len(name), name)
		}
	}
}

// BenchmarkMetrics collects and writes the series of 1,000 packages, without the series of their
// revisions, which add two each.
func BenchmarkMetrics(b *testing.B) {
	c := &cached{}
	for i := range 1000 {
		pkg := unpackedPackage(func(p *corev1alpha1.Package) {
			p.Generation, p.Name, p.UID = 0, fmt.Sprintf("shop-%d", i), types.UID(fmt.Sprint(i))
			p.Status.Conditions = []metav1.Condition{conditionOf("Available", "True", "X"), conditionOf("Ready", "True", "X")}
		})
		c.packages = append(c.packages, *pkg)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&exporter{reader: c, taken: once})
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	var text string
	for b.Loop() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text = answer.Body.String()
	}
	b.ReportMetric(float64(strings.Count("\n"+text, "\n")-strings.Count("\n"+text, "\n#")-1), "series")
	b.ReportMetric(float64(len(text)), "bytes")
}

// once is the record of any package that was loaded once.
func once(corev1alpha1.GenericPackage) (loads int, took time.Duration) { return 1, time.Second }
