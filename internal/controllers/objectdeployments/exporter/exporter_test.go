package exporter

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/metricstest"
	"lockstep.run/lockstep/test/require"
)

// cachedSets is a cache with revisions of one package.
type cachedSets struct{ client.Reader }

func (cachedSets) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l, namespaced := list.(*corev1alpha1.ObjectSetList)
	if !namespaced {
		return nil
	}
	at := func(seconds int64) metav1.Time { return metav1.Time{Time: time.Unix(seconds, 0)} }
	meta := func(name string, created int64, label string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: "team", CreationTimestamp: at(created), Labels: map[string]string{label: "shop"},
			Annotations: map[string]string{corev1alpha1.PackageSourceImageAnnotation: "registry.test/shop:v1"},
		}
	}
	succeeded := metav1.Condition{Type: corev1alpha1.ConditionSucceeded, Status: "True", LastTransitionTime: at(2000)}
	archived := metav1.Condition{Type: corev1alpha1.ConditionArchived, Status: "True"}
	l.Items = []corev1alpha1.ObjectSet{
		{ObjectMeta: meta("old", 1000, corev1alpha1.ObjectDeploymentLabel)},
		{ObjectMeta: meta("now", 1001, corev1alpha1.PackageInstanceLabel)},
		{ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: "team", CreationTimestamp: at(3)}},
	}
	for i := range int64(metricRevisions) {
		l.Items = append(l.Items, corev1alpha1.ObjectSet{ObjectMeta: meta(fmt.Sprint("before-", i), 900-i, corev1alpha1.ObjectDeploymentLabel)})
	}
	l.Items[0].Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	l.Items[0].Status.Conditions = []metav1.Condition{succeeded, archived}
	l.Items[1].Status.Conditions = []metav1.Condition{succeeded}
	return nil
}

// The latest revisions of each package have series, archived or not.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := &Sets{Reader: cachedSets{}}
	want := map[string]float64{
		"package_operator_object_set_created_timestamp_seconds old team shop":                         1000,
		"package_operator_object_set_succeeded_timestamp_seconds registry.test/shop:v1 old team shop": 2000,
		"package_operator_object_set_created_timestamp_seconds now team shop":                         1001,
		"package_operator_object_set_succeeded_timestamp_seconds registry.test/shop:v1 now team shop": 2000,
		"package_operator_object_set_created_timestamp_seconds alone team ":                           3,
	}
	for i := range metricRevisions - 2 {
		want[fmt.Sprintf("package_operator_object_set_created_timestamp_seconds before-%d team shop", i)] = float64(900 - i)
	}
	require.Equal(t, want, metricstest.Values(t, m))
}
