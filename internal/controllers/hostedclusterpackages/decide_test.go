package hostedclusterpackages

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// parse reads targets as "GROUP STATE…", separated by commas. States: missing, outdated (else
// updated), down (else available), rolling (else stable), failed, queued, refused, retry, foreign,
// deleting.
func parse(text string) []target {
	var all []target
	for i, entry := range strings.Split(text, ",") {
		words := strings.Fields(entry)
		has := func(word string) bool { return slices.Contains(words, word) }
		t := target{
			namespace: fmt.Sprint("ns", i), group: int(words[0][0] - '0'), uid: types.UID(fmt.Sprint(i)),
			updated: !has("outdated"), available: !has("down"), stable: !has("down") && !has("rolling"), rolledOut: !has("down") && !has("rolling") && !has("paused"), failed: has("failed"),
			queued: has("queued"), refused: has("refused"), retry: has("retry"), foreign: has("foreign"), deleting: has("deleting"),
		}
		if has("missing") {
			t = target{namespace: t.namespace, group: t.group, refused: t.refused, retry: t.retry}
		}
		all = append(all, t)
	}
	return all
}

func describe(d decision) string {
	var parts []string
	for _, list := range []struct {
		name    string
		indices []int
	}{{"create", d.create}, {"update", d.update}, {"remove", d.remove}, {"queue", d.queue}} {
		if len(list.indices) > 0 {
			parts = append(parts, fmt.Sprint(list.name, list.indices))
		}
	}
	return strings.Join(parts, " ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason string
		most         int
		changed      bool
		targets      string
		want         string
	}{
		{"rest", "no Package needs a change", 1, false, "0, 0", ""},
		{"instant", "all at once, in no order", 0, false, "0 outdated, 0 outdated down, 1 outdated, 2 missing", "create[3] update[1 0 2] queue[0 1 2]"},
		{"create", "missing Packages are created within any budget", 1, false, "0 missing, 0 missing, 1 missing", "create[0 1 2]"},
		{"creation refused", "it is sent again later", 1, false, "0 missing refused, 0 missing retry", ""},
		{"rolling", "as many as the budget", 2, false, "0 outdated, 0 outdated, 0 outdated", "update[0 1] queue[0 1]"},
		{"rolling on", "a Package can become unavailable while it is updated", 2, false, "0 rolling queued, 0 outdated, 0 outdated", "update[1] queue[0 1]"},
		{"unavailable first", "they are unavailable already", 1, false, "0 outdated, 0 outdated down, 0", "update[1] queue[1]"},
		{"others unavailable", "a Package that is not available for another reason counts, too", 2, false, "0 down, 0 missing, 0 outdated", "create[1]"},
		{"not rolled out yet", "a new one can become unavailable, too", 1, false, "0 rolling, 0 outdated", ""},
		{"unavailable within the budget", "they are not updated all at once either", 2, false, "0 outdated down, 0 outdated down, 0 outdated down", "update[0 1] queue[0 1]"},
		{"a later Package is not available", "no other becomes unavailable meanwhile", 1, false, "0 outdated, 1 outdated down", ""},
		{"queue at zero budget", "the queue is kept", 1, false, "0 rolling queued, 0 outdated queued, 0 outdated", "update[1] queue[0 1]"},
		{"queue of a lowered budget", "the queue is kept, and no update starts", 1, false, "0 down queued, 0 rolling queued, 0 outdated", "queue[0 1]"},
		{"ended", "a stable Package leaves the queue", 1, false, "0 queued, 0 outdated", "update[1] queue[1]"},
		{"template changes during an update", "an update that has not ended follows at once", 1, true, "0 outdated, 1 outdated down queued", "update[1] queue[1]"},
		{"template changes after an update", "an update that has ended, or has not started, waits for its turn", 1, true, "0 outdated, 1 outdated queued", "update[0] queue[0]"},
		{"restart before the write", "the queue is continued", 1, false, "0 outdated, 1 outdated queued", "update[1] queue[1]"},
		{"order", "the next group starts when this one has ended", 3, false, "0 outdated, 1 outdated, 2 outdated", "update[0] queue[0]"},
		{"order, one under way", "", 3, false, "0, 0 rolling queued, 1 outdated", "queue[1]"},
		{"order, ended", "", 3, false, "0, 1 outdated, 2 outdated", "update[1] queue[1]"},
		{"order, failed next to a success", "a failed update only takes from the budget", 2, false, "0, 0 down failed queued, 1 outdated, 1 outdated", "update[2] queue[1 2]"},
		{"order, failed in the budget of one", "", 1, false, "0, 0 down failed queued, 1 outdated", "queue[1]"},
		{"order, all failed", "a later group gets only versions that succeeded before", 3, false, "0 down failed queued, 1 outdated", "queue[0]"},
		{"order, refused next to a success", "one that others pinned holds up no other", 3, false, "0, 0 outdated refused, 1 outdated", "update[2] queue[2]"},
		{"order, all refused", "", 3, false, "0 outdated refused, 1 outdated", ""},
		{"order, to be sent again", "it can have been written", 3, false, "0, 0 outdated retry, 1 outdated", ""},
		{"order, foreign and deleted", "they are not updated", 3, false, "0 outdated foreign, 0 outdated deleting, 1 outdated", "update[2] queue[2]"},
		{"order, missing", "a new hosted cluster holds up no group", 3, false, "0 missing, 1 outdated", "create[0] update[1] queue[1]"},
		{"order, fails later", "it counts in the budget alone", 3, false, "0, 0 down, 1 outdated", "update[2] queue[2]"},
		{"refused in the queue", "nothing was written", 1, false, "0 outdated refused queued, 0 outdated", "update[1] queue[1]"},
		{"sent again in the queue", "it can have been written", 1, false, "0 outdated retry queued, 0 outdated", "queue[0]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := describe(decide(snapshot{most: tc.most, templateChanged: tc.changed, targets: parse(tc.targets)}))
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}

func TestRemovals(t *testing.T) {
	t.Parallel()
	there, going, failed := surplus{}, surplus{deleting: true}, surplus{retry: true}
	for _, tc := range []struct {
		most    int
		surplus []surplus
		want    []int
	}{
		{0, []surplus{there, going, there}, []int{0, 2}},
		{2, []surplus{there, there, there}, []int{0, 1}},
		{2, []surplus{there, going, there}, []int{0}},
		{1, []surplus{there, going}, nil},
		{1, []surplus{failed, there}, []int{1}},
	} {
		got := decide(snapshot{most: tc.most, surplus: tc.surplus}).remove
		require.Equal(t, tc.want, got, fmt.Sprintf("%+v", tc))
	}
}

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
