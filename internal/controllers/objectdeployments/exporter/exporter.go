// Package exporter has the metrics of ObjectSets.
package exporter

import (
	"cmp"
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/metrics"
)

// metricRevisions is the number of revisions of a deployment with metrics: the current one and the
// default history.
const metricRevisions = 1 + int(corev1alpha1.DefaultRevisionHistoryLimit)

// Sets reads the sets from the cache at each scrape, as the exporter of packages does.
type Sets struct{ Reader client.Reader }

// Describe names the metrics.
func (m *Sets) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out, metrics.SetCreated, metrics.SetSucceeded)
}

// Collect reads the sets of both scopes, history included.
func (m *Sets) Collect(out chan<- prometheus.Metric) {
	deployments := map[types.NamespacedName][]corev1alpha1.GenericObjectSet{}
	for _, scope := range corev1alpha1.Scopes() {
		list := scope.NewObjectSetList()
		if err := m.Reader.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		for _, set := range list.GenericObjectSets() {
			if name := instanceOf(set); name != "" {
				key := types.NamespacedName{Namespace: set.GetNamespace(), Name: name}
				deployments[key] = append(deployments[key], set)
				continue
			}
			collect(out, set)
		}
	}

	for _, sets := range deployments {
		slices.SortFunc(sets, func(a, b corev1alpha1.GenericObjectSet) int {
			return cmp.Or(b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
		})
		for _, set := range sets[:min(len(sets), metricRevisions)] {
			collect(out, set)
		}
	}
}

// instanceOf names the package or the deployment of a set; empty for a lone set.
func instanceOf(set corev1alpha1.GenericObjectSet) string {
	return cmp.Or(set.GetLabels()[corev1alpha1.PackageInstanceLabel], set.GetLabels()[corev1alpha1.ObjectDeploymentLabel])
}

func collect(out chan<- prometheus.Metric, set corev1alpha1.GenericObjectSet) {
	labels := []string{set.GetName(), set.GetNamespace(), instanceOf(set)}
	out <- metrics.SetCreated.Value(float64(set.GetCreationTimestamp().Unix()), labels...)
	succeeded := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
	if succeeded == nil || succeeded.Status != "True" {
		return
	}
	image := set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]
	out <- metrics.SetSucceeded.Value(float64(succeeded.LastTransitionTime.Unix()), append(labels, image)...)
}
