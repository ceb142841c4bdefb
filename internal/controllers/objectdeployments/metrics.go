package objectdeployments

import (
	"cmp"
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectsets"
)

// Metrics of revisions, under the names of Package Operator.
var (
	createdAt = prometheus.NewDesc("package_operator_object_set_created_timestamp_seconds",
		"When the revision was created, in seconds since 1970.", []string{"pko_name", "pko_namespace", "pko_package_instance"}, nil)
	succeededAt = prometheus.NewDesc("package_operator_object_set_succeeded_timestamp_seconds",
		"When the revision that is not archived was rolled out, in seconds since 1970.",
		[]string{"pko_name", "pko_namespace", "pko_package_instance", "image"}, nil)
)

// metrics reads the sets from the cache at each scrape, as that of packages does.
type metrics struct {
	reader client.Reader
}

// Describe names the metrics.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	out <- createdAt
	out <- succeededAt
}

// Collect reads the sets of both scopes.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewObjectSetList()
		if err := m.reader.List(context.Background(), list.(client.ObjectList), client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		for _, set := range list.GenericObjectSets() {
			collect(out, set)
		}
	}
}

func collect(out chan<- prometheus.Metric, set corev1alpha1.GenericObjectSet) {
	// Archived sets are cached without the labels of their package, which is named like the deployment.
	instance := cmp.Or(set.GetLabels()[corev1alpha1.PackageInstanceLabel], set.GetLabels()[corev1alpha1.ObjectDeploymentLabel])
	labels := []string{set.GetName(), set.GetNamespace(), instance}
	out <- prometheus.MustNewConstMetric(createdAt, prometheus.GaugeValue, float64(set.GetCreationTimestamp().Unix()), labels...)
	succeeded := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
	if succeeded == nil || succeeded.Status != "True" || !objectsets.Owns(set) {
		return
	}
	image := set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]
	out <- prometheus.MustNewConstMetric(succeededAt, prometheus.GaugeValue, float64(succeeded.LastTransitionTime.Unix()), append(labels, image)...)
}
