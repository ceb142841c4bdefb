package hostedclusterpackages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
)

const (
	hostedPartitions = 60 // groups that a status counts: some 12 KiB
	hostedNames      = 5  // Packages that a message names
)

// counts are the counts in a status, of all Packages or of one group.
type counts struct{ total, available, progressed, updated, paused, unready int }

func (c *counts) add(t *target) {
	yes := func(n *int, counted bool) {
		if counted {
			*n++
		}
	}
	ours := t.exists() && !t.foreign
	yes(&c.total, true)
	yes(&c.available, ours && t.available && !t.deleting)
	yes(&c.progressed, ours && t.updated && t.progressed && !t.failed)
	yes(&c.updated, ours && t.updated)
	yes(&c.paused, ours && t.paused)
	yes(&c.unready, !t.ready())
}

func (c *counts) status(generation int64) corev1alpha1.HostedClusterPackageCountsStatus {
	//nolint:gosec // of objects in one cluster
	return corev1alpha1.HostedClusterPackageCountsStatus{
		ObservedGeneration: int32(generation), TotalPackages: int32(c.total), AvailablePackages: int32(c.available),
		ProgressedPackages: int32(c.progressed), UpdatedPackages: int32(c.updated),
	}
}

func statusOf(v view) *corev1alpha1.HostedClusterPackageStatus {
	status, generation := v.owner.Status.DeepCopy(), v.owner.Generation
	if v.unknown != nil {
		reason := corev1alpha1.ReasonHostedClustersUnknown
		if errors.Is(v.unknown, errSelector) {
			reason = corev1alpha1.ReasonSelectorInvalid
		}
		conditions.Kstatus(&status.Conditions, generation, conditions.State{
			Stalled: reason == corev1alpha1.ReasonSelectorInvalid, Reason: reason, Message: v.unknown.Error() + ". Packages stay as they are.",
		})
		status.ObservedGeneration = int32(generation) //nolint:gosec // the wire format has 32 bits
		return status
	}

	var all counts
	for i := range v.targets {
		all.add(&v.targets[i])
	}

	status.HostedClusterPackageCountsStatus = all.status(generation)
	status.Partitions = partitionsOf(v)
	status.Processing = processingOf(v)
	set := func(typ string, holds bool, yes, no, counted string, n int) {
		reason := no
		if holds {
			reason = yes
		}
		conditions.Set(&status.Conditions, generation, typ, holds, reason, fmt.Sprintf("%d/%d packages %s.", n, all.total, counted))
	}

	set(corev1alpha1.ConditionAvailable, all.total-all.available <= maxUnavailable(v.owner),
		corev1alpha1.ReasonEnoughPackagesAvailable, corev1alpha1.ReasonNotEnoughPackagesAvailable, "available", all.available)
	set(corev1alpha1.ConditionProgressing, all.progressed < all.total,
		corev1alpha1.ReasonNotAllPackagesProgressed, corev1alpha1.ReasonAllPackagesProgressed, "progressed", all.progressed)
	set(corev1alpha1.ConditionHasPausedPackage, all.paused > 0,
		corev1alpha1.ReasonAtLeastOnePackagePaused, corev1alpha1.ReasonNoPackagePaused, "paused", all.paused)
	conditions.Kstatus(&status.Conditions, generation, stateOf(v, all))
	reportTruncated(status, v)
	return status
}

// partitionsOf returns the counters of each group, in the order of the groups.
func partitionsOf(v view) []corev1alpha1.HostedClusterPackagePartitionStatus {
	var all []corev1alpha1.HostedClusterPackagePartitionStatus
	for number, name := range v.groups.names[:min(len(v.groups.names), hostedPartitions)] {
		var c counts
		for i := range v.targets {
			if v.targets[i].group == number {
				c.add(&v.targets[i])
			}
		}
		all = append(all, corev1alpha1.HostedClusterPackagePartitionStatus{
			Name: name, HostedClusterPackageCountsStatus: c.status(v.owner.Generation),
		})
	}

	return all
}

// processingOf returns the queue of updates. It can exceed the list of a status only if updates
// have no limit.
func processingOf(v view) []corev1alpha1.HostedClusterPackageRefStatus {
	var refs []corev1alpha1.HostedClusterPackageRefStatus
	for _, i := range v.queue[:min(len(v.queue), hostedUpdates)] {
		t := v.targets[i]
		refs = append(refs, corev1alpha1.HostedClusterPackageRefStatus{UID: t.uid, Name: v.owner.Name, Namespace: t.namespace})
	}
	return refs
}

func reportTruncated(status *corev1alpha1.HostedClusterPackageStatus, v view) {
	if len(v.groups.names) <= hostedPartitions {
		conditions.Remove(&status.Conditions, corev1alpha1.ConditionTruncated)
		return
	}
	conditions.Set(&status.Conditions, v.owner.Generation, corev1alpha1.ConditionTruncated, true, corev1alpha1.ReasonStatusLimit,
		fmt.Sprintf("Left out: %d of %d partitions", len(v.groups.names)-hostedPartitions, len(v.groups.names)))
}

// stateOf returns the state of the whole.
func stateOf(v view, all counts) conditions.State {
	var problems []string
	pending := true
	for _, p := range v.problems {
		problems = append(problems, fmt.Sprintf("Package %s/%s: %s", p.namespace, v.owner.Name, p.message))
		pending = pending && p.pending
	}

	if len(problems) > 0 {
		message := conditions.Message(strings.Join(first(problems, "… and %d more"), "\n"))
		return conditions.State{Stalled: !pending, Reason: v.problems[0].reason, Message: message}
	}

	var waits []string
	if n := all.total - all.updated; n > 0 {
		waits = append(waits, fmt.Sprintf("%d of %d packages are to be updated", n, all.total))
	}
	if names := namesOf(v, func(t *target) bool { return !t.stable }); len(names) > 0 {
		waits = append(waits, "not rolled out: "+strings.Join(first(names, "and %d more"), ", "))
	}
	if names := namesOf(v, func(t *target) bool { return t.stable && !t.rolledOut }); len(names) > 0 {
		waits = append(waits, "paused before they were rolled out: "+strings.Join(first(names, "and %d more"), ", "))
	}
	if n := len(v.surplus); n > 0 {
		waits = append(waits, fmt.Sprintf("packages of hosted clusters that are not selected are being removed: %d", n))
	}
	if len(waits) == 0 {
		return conditions.State{Ready: true, Reason: corev1alpha1.ReasonAllPackagesProgressed, Message: fmt.Sprintf("%d/%d packages are rolled out.", all.total, all.total)}
	}

	state := conditions.State{Reason: corev1alpha1.ReasonNotAllPackagesProgressed, Message: strings.Join(waits, "; ") + "."}
	if waitsForHelp(v) {
		state.Stalled, state.Reason = true, corev1alpha1.ReasonNotEnoughPackagesAvailable
	}
	return state
}

// waitsForHelp reports whether no update continues before a failed Package is available.
func waitsForHelp(v view) bool {
	failed := 0
	for i := range v.targets {
		switch t := &v.targets[i]; {
		case t.exists() && t.updated && t.failed:
			failed++
		case slices.Contains(v.queue, i), slices.Contains(v.create, i):
			return false
		}
	}
	return failed > 0 && len(v.create)+len(v.update)+len(v.remove) == 0
}

// namesOf returns the namespaces of some targets.
func namesOf(v view, of func(*target) bool) []string {
	var names []string
	for i := range v.targets {
		if of(&v.targets[i]) {
			names = append(names, v.targets[i].namespace)
		}
	}
	return names
}

// first returns the first texts, and the number of further ones.
func first(texts []string, more string) []string {
	if len(texts) <= hostedNames {
		return texts
	}
	return append(slices.Clone(texts[:hostedNames]), fmt.Sprintf(more, len(texts)-hostedNames))
}
