package hostedclusterpackages

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	static := func(values ...string) *corev1alpha1.HostedClusterPackagePartition {
		return &corev1alpha1.HostedClusterPackagePartition{LabelKey: "risk", Order: &corev1alpha1.HostedClusterPackagePartitionOrder{Static: values}}
	}
	ascending := &corev1alpha1.HostedClusterPackagePartition{LabelKey: "risk"}
	explicit := ascending.DeepCopy()
	explicit.Order = &corev1alpha1.HostedClusterPackagePartitionOrder{
		AlphanumericAsc: &corev1alpha1.HostedClusterPackagePartitionOrderAlphanumericAsc{},
	}
	// The label of each hosted cluster; "-" means that it has none.
	clusters := []string{"mid", "low", "-", "high", "low", "", "10", "9"}
	for name, tc := range map[string]struct {
		partition *corev1alpha1.HostedClusterPackagePartition
		names     []string
		numbers   []int
	}{
		"none":                          {nil, nil, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"ascending, unlabelled last":    {ascending, []string{"10", "9", "high", "low", "mid", ""}, []int{4, 3, 5, 2, 3, 5, 0, 1}},
		"ascending, as stated":          {explicit, []string{"10", "9", "high", "low", "mid", ""}, []int{4, 3, 5, 2, 3, 5, 0, 1}},
		"static, others last":           {static("low", "mid", "absent"), []string{"low", "mid", "*"}, []int{1, 0, 2, 2, 0, 2, 2, 2}},
		"static, others where they are": {static("low", "*", "mid"), []string{"low", "*", "mid"}, []int{2, 0, 1, 1, 0, 1, 1, 1}},
		"static, unlabelled listed":     {static("", "low"), []string{"", "low", "*"}, []int{2, 1, 0, 2, 1, 0, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var labels []map[string]string
			for _, value := range clusters {
				if value == "-" {
					labels = append(labels, nil)
					continue
				}
				labels = append(labels, map[string]string{"risk": value})
			}
			g := groupsOf(tc.partition, labels)
			numbers := make([]int, len(labels))
			for i := range labels {
				numbers[i] = g.numberOf(labels[i])
			}
			require.Equal(t, tc.names, g.names)
			require.Equal(t, tc.numbers, numbers)
		})
	}
}
