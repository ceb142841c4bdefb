package hostedclusterpackages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// viewOf returns the view of targets as parse has them, decided.
func viewOf(text string, changes ...func(*view)) view {
	v := view{owner: owner()}
	v.most = 2
	v.owner.Spec.Strategy.RollingUpgrade = &corev1alpha1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: 2}
	if text != "" {
		v.targets = parse(text)
	}
	for i := range v.targets {
		v.targets[i].progressed, v.targets[i].paused = v.targets[i].rolledOut, v.targets[i].stable && !v.targets[i].rolledOut
	}
	for _, change := range changes {
		change(&v)
	}
	v.decision = decide(v.snapshot)
	return v
}

// lines returns the conditions, without times, sorted as they are set.
func lines(status *corev1alpha1.HostedClusterPackageStatus) string {
	var all []string
	for _, c := range status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(all, "\n")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		view view
		want string
	}{
		"nothing selected": {viewOf(""), `
Available=True EnoughPackagesAvailable: 0/0 packages available.
Progressing=False AllPackagesProgressed: 0/0 packages progressed.
HasPausedPackage=False NoPackagePaused: 0/0 packages paused.
Ready=True AllPackagesProgressed: 0/0 packages are rolled out.`},
		"missing ones count": {viewOf("0, 0 missing, 0 missing, 0 missing"), `
Available=False NotEnoughPackagesAvailable: 1/4 packages available.
Progressing=True NotAllPackagesProgressed: 1/4 packages progressed.
HasPausedPackage=False NoPackagePaused: 0/4 packages paused.
Ready=False NotAllPackagesProgressed: 3 of 4 packages are to be updated; not rolled out: ns1, ns2, ns3.
Reconciling=True NotAllPackagesProgressed: 3 of 4 packages are to be updated; not rolled out: ns1, ns2, ns3.`},
		"an update": {viewOf("0, 0 rolling queued, 0 outdated", func(v *view) { v.targets[0].paused = true }), `
Available=True EnoughPackagesAvailable: 3/3 packages available.
Progressing=True NotAllPackagesProgressed: 1/3 packages progressed.
HasPausedPackage=True AtLeastOnePackagePaused: 1/3 packages paused.
Ready=False NotAllPackagesProgressed: 1 of 3 packages are to be updated; not rolled out: ns1.
Reconciling=True NotAllPackagesProgressed: 1 of 3 packages are to be updated; not rolled out: ns1.`},
		"paused with its former content": {viewOf("0, 0 paused"), `
Available=True EnoughPackagesAvailable: 2/2 packages available.
Progressing=True NotAllPackagesProgressed: 1/2 packages progressed.
HasPausedPackage=True AtLeastOnePackagePaused: 1/2 packages paused.
Ready=False NotAllPackagesProgressed: paused before they were rolled out: ns1.
Reconciling=True NotAllPackagesProgressed: paused before they were rolled out: ns1.`},
		"failed": {viewOf("0 down failed queued, 1 outdated"), `
Available=True EnoughPackagesAvailable: 1/2 packages available.
Progressing=True NotAllPackagesProgressed: 0/2 packages progressed.
HasPausedPackage=False NoPackagePaused: 0/2 packages paused.
Ready=False NotEnoughPackagesAvailable: 1 of 2 packages are to be updated; not rolled out: ns0.
Stalled=True NotEnoughPackagesAvailable: 1 of 2 packages are to be updated; not rolled out: ns0.`},
		"refused": {viewOf("0 outdated refused, 0", func(v *view) {
			v.problems = []problem{{"ns0", corev1alpha1.ReasonApplyError, "conflict", false}, {"ns1", corev1alpha1.ReasonApplyError, "away", true}}
		}), `
Available=True EnoughPackagesAvailable: 2/2 packages available.
Progressing=True NotAllPackagesProgressed: 1/2 packages progressed.
HasPausedPackage=False NoPackagePaused: 0/2 packages paused.
Ready=False ApplyError: Package ns0/shop: conflict
Package ns1/shop: away
Stalled=True ApplyError: Package ns0/shop: conflict
Package ns1/shop: away`},
		"removing": {viewOf("0", func(v *view) { v.surplus = []surplus{{namespace: "x", deleting: true}} }), `
Available=True EnoughPackagesAvailable: 1/1 packages available.
Progressing=False AllPackagesProgressed: 1/1 packages progressed.
HasPausedPackage=False NoPackagePaused: 0/1 packages paused.
Ready=False NotAllPackagesProgressed: packages of hosted clusters that are not selected are being removed: 1.
Reconciling=True NotAllPackagesProgressed: packages of hosted clusters that are not selected are being removed: 1.`},
		"not served": {viewOf("", func(v *view) { v.unknown = environment.ErrNotServed }), `
Ready=False HostedClustersUnknown: the cluster serves no HostedClusters (hypershift.openshift.io). Packages stay as they are.
Reconciling=True HostedClustersUnknown: the cluster serves no HostedClusters (hypershift.openshift.io). Packages stay as they are.`},
		"invalid selector": {viewOf("", func(v *view) { v.unknown = fmt.Errorf("%w: no", errSelector) }), `
Ready=False SelectorInvalid: spec.hostedClusterSelector is invalid: no. Packages stay as they are.
Stalled=True SelectorInvalid: spec.hostedClusterSelector is invalid: no. Packages stay as they are.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := statusOf(tc.view)
			require.Equal(t, strings.TrimSpace(tc.want), lines(status))
			tc.view.owner.Status = *status
			require.Equal(t, status, statusOf(tc.view), "a status is written twice")
		})
	}
}

// Lists and messages of a status are bounded.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	const n = 300
	var labels []map[string]string
	targets := strings.TrimSuffix(strings.Repeat("0 outdated,", n), ",")
	v := viewOf(targets, func(v *view) {
		v.most = 0
		for i := range n {
			v.targets[i].group = i
			labels = append(labels, map[string]string{"risk": fmt.Sprintf("%063d", i)})
			v.problems = append(v.problems, problem{fmt.Sprint(i), corev1alpha1.ReasonApplyError, strings.Repeat("x", hostedProblemBytes), false})
		}
		v.groups = groupsOf(&corev1alpha1.HostedClusterPackagePartition{LabelKey: "risk"}, labels)
	})
	status := statusOf(v)
	if len(status.Processing) != hostedUpdates || len(status.Partitions) != hostedPartitions {
		t.Errorf("%d packages, %d partitions", len(status.Processing), len(status.Partitions))
	}
	if c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionTruncated); c == nil || c.Message != "Left out: 240 of 300 partitions" {
		t.Errorf("%+v", c)
	}
	for _, c := range status.Conditions {
		if len(c.Message) > limits.MessageBytes {
			t.Errorf("%s has %d bytes", c.Type, len(c.Message))
		}
	}
	if !strings.HasSuffix(meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionReady).Message, "… and 295 more") {
		t.Error("which problems are left out?")
	}
}

func TestTransitionEvents(t *testing.T) {
	t.Parallel()
	status := func(state conditions.State) *corev1alpha1.HostedClusterPackageStatus {
		s := &corev1alpha1.HostedClusterPackageStatus{}
		conditions.Kstatus(&s.Conditions, 1, state)
		return s
	}
	ready, working := status(conditions.State{Ready: true, Reason: "Done"}), status(conditions.State{Reason: "Working"})
	stalled := status(conditions.State{Stalled: true, Reason: "Stuck", Message: errors.New("conflict").Error()})
	for _, tc := range []struct {
		before, after *corev1alpha1.HostedClusterPackageStatus
		want          string
	}{
		{&corev1alpha1.HostedClusterPackageStatus{}, working, "[]"},
		{working, ready, "[{Normal Done Rollout }]"},
		{ready, ready, "[]"},
		{ready, working, "[]"},
		{working, stalled, "[{Warning Stuck Rollout conflict}]"},
		{stalled, stalled, "[]"},
	} {
		require.Equal(t, tc.want, fmt.Sprint(transitionEvents(tc.before, tc.after)), fmt.Sprintf("%v to %v", tc.before, tc.after))
	}
}
