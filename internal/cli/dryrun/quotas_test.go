package dryrun

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

// TestUsage counts as the API server does.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		gr     schema.GroupResource
		object string
		want   map[corev1.ResourceName]string
	}{
		{schema.GroupResource{Group: "apps", Resource: "deployments"}, `{}`, map[corev1.ResourceName]string{"count/deployments.apps": "1"}},
		{schema.GroupResource{Resource: "configmaps"}, `{}`, map[corev1.ResourceName]string{"count/configmaps": "1", "configmaps": "1"}},
		{
			schema.GroupResource{Resource: "services"}, `{"spec":{"type":"LoadBalancer","ports":[{"port":1},{"port":2}]}}`,
			map[corev1.ResourceName]string{"count/services": "1", "services": "1", "services.loadbalancers": "1", "services.nodeports": "2"},
		},
		{
			schema.GroupResource{Resource: "persistentvolumeclaims"}, `{"spec":{"storageClassName":"fast","resources":{"requests":{"storage":"5Gi"}}}}`,
			map[corev1.ResourceName]string{
				"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "5Gi",
				"fast.storageclass.storage.k8s.io/requests.storage": "5Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
			},
		},
	} {
		got := map[corev1.ResourceName]string{}
		for name, q := range usageOf(tc.gr, yamltest.Object(t, tc.object)) {
			got[name] = q.String()
		}
		require.Equal(t, tc.want, got, tc.gr)
	}
}

// What new objects exceed together is counted phase by phase.
func TestExceeded(t *testing.T) {
	t.Parallel()
	one := corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("1")}
	quota := &corev1.ResourceQuota{
		Spec:   corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("3")}},
		Status: corev1.ResourceQuotaStatus{Used: one},
	}
	needs := []need{{Phase: 0, Usage: one}, {Phase: 1, Usage: one}}
	if got := exceeded(quota, needs); got != nil {
		t.Errorf("what fits in: %+v", got)
	}
	needs = append(needs, need{Phase: 2, Usage: one})
	want := []excess{{Phase: 2, Message: "exceeded quota: configmaps is limited to 3, 1 of it used, and what is created up to this phase takes 3 more"}}
	require.Equal(t, want, exceeded(quota, needs))
	quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	if got := exceeded(quota, needs); got != nil {
		t.Errorf("a quota of some pods: %+v", got)
	}
}
