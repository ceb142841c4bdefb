package packages

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/testing/metricstest"
)

// cached is a cache with one package in each scope.
type cached struct{ client.Reader }

func (cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1alpha1.PackageList:
		pkg := unpackedPackage(func(p *corev1alpha1.Package) {
			p.CreationTimestamp = metav1.Time{Time: time.Unix(1000, 0)}
			p.Status.Revision = 3
			p.Status.Conditions = []metav1.Condition{conditionOf("Available", "True", "X")}
		})
		l.Items = []corev1alpha1.Package{*pkg}
	case *corev1alpha1.ClusterPackageList:
		l.Items = []corev1alpha1.ClusterPackage{{ObjectMeta: metav1.ObjectMeta{Name: "big", UID: "other"}}}
	}
	return nil
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	memory := &memory{}
	m := &metrics{reader: cached{}, memory: memory}
	key := types.NamespacedName{Namespace: "team", Name: "shop"}
	memory.states = map[types.NamespacedName]*state{
		key:           {uid: "pkg-uid", loads: 2, took: 1500 * time.Millisecond},
		{Name: "big"}: {uid: "former", loads: 1, took: time.Second},
	}
	want := map[string]float64{
		"package_operator_package_availability registry.test/shop:v1 shop team": 1,
		"package_operator_package_created_timestamp_seconds shop team":          1000,
		"package_operator_package_load_duration_seconds shop team":              1.5,
		"package_operator_package_revision shop team":                           3,
		"lockstep_package_loads_total shop team":                                2,
		"package_operator_package_availability  big ":                           2,
		"package_operator_package_created_timestamp_seconds big ":               float64((&metav1.Time{}).Unix()),
		"package_operator_package_revision big ":                                0,
	}
	if diff := cmp.Diff(want, metricstest.Values(t, m)); diff != "" {
		t.Error(diff)
	}
	delete(memory.states, key)
	delete(want, "package_operator_package_load_duration_seconds shop team")
	delete(want, "lockstep_package_loads_total shop team")
	if diff := cmp.Diff(want, metricstest.Values(t, m)); diff != "" {
		t.Error(diff)
	}
}
