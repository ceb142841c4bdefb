package hostedclusterpackages

import (
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// maxUnavailable returns how many Packages can be unavailable during an update; 0 means no limit.
func maxUnavailable(owner *corev1alpha1.HostedClusterPackage) int {
	strategy := owner.Spec.Strategy
	if strategy.Instant != nil || strategy.RollingUpgrade == nil {
		return 0
	}
	return max(1, strategy.RollingUpgrade.MaxUnavailable)
}

// snapshot is the input of a decision.
type snapshot struct {
	// most Packages are updated or removed at a time, and at most so many are unavailable; 0 is
	// without limit and order.
	most int
	// targets are the selected hosted clusters that have a Package or should, by group and then by
	// namespace.
	targets []target
	// surplus are the Packages of hosted clusters that no longer exist or are not selected, by
	// namespace.
	surplus []surplus
	// templateChanged reports whether the queue might be from an earlier template.
	templateChanged bool
}

// target is the Package of one hosted cluster.
type target struct {
	// namespace of the control plane.
	namespace string
	// group is the number of its group in the order of groups.
	group int
	// uid is empty if there is no Package.
	uid types.UID
	// queued reports whether the Package is in the queue of updates.
	queued bool
	// updated reports whether the Package matches the template.
	updated bool
	// available, progressed and paused are as the Package reports of its present generation.
	available, progressed, paused bool
	// rolledOut reports whether the Package is rolled out in its present generation. stable is true
	// also if it is paused while it is available, because it then stays unchanged.
	rolledOut, stable bool
	// failed reports whether the rollout of the Package cannot go on without help.
	failed bool
	// foreign reports whether the Package is not ours, deleting whether it is being deleted.
	foreign, deleting bool
	// refused reports whether the API server refuses the content of the template; retry, that it is
	// not sent at the moment.
	refused, retry bool
}

func (t *target) exists() bool { return t.uid != "" }

// writable reports whether the Package can be updated at the moment.
func (t *target) writable() bool {
	return t.exists() && !t.foreign && !t.deleting && !t.refused && !t.retry
}

// outdated reports whether the Package is ours and does not match the template.
func (t *target) outdated() bool { return t.exists() && !t.foreign && !t.updated }

// ready reports whether the Package can be relied on: one that is being updated can become
// unavailable at any time.
func (t *target) ready() bool {
	return t.exists() && !t.foreign && !t.deleting && t.available && (t.stable || !t.updated)
}

// surplus is a Package to remove.
type surplus struct {
	namespace string
	deleting  bool
	// retry reports whether the deletion failed, and is not sent at the moment.
	retry bool
}

// decision is the result: indices of the snapshot's targets, and for remove of its surplus.
type decision struct {
	create, update, remove []int
	// queue are the Packages whose update has not ended, including the ones in update.
	queue []int
}

// decide returns the writes that are due at once.
func decide(s snapshot) decision {
	r := rollout{snapshot: s, queued: make([]bool, len(s.targets))}
	r.resume()
	for from := 0; from < len(s.targets); {
		to := endOfGroup(s.targets, from)
		if s.most == 0 {
			to = len(s.targets)
		}
		r.start(from, to)
		if !ended(s.targets[from:to], r.queued[from:to]) {
			break
		}
		from = to
	}

	for i, queued := range r.queued {
		if queued {
			r.queue = append(r.queue, i)
		}
	}

	r.remove = removals(s)
	return r.decision
}

// rollout is a decision that is being made.
type rollout struct {
	snapshot
	decision
	queued []bool
	// updating counts the queue; unready also counts Packages that cannot be relied on for another
	// reason.
	updating, unready int
}

// resume creates missing Packages, and continues with the queue.
func (r *rollout) resume() {
	for i := range r.targets {
		t := &r.targets[i]
		if stays(t, r.templateChanged) {
			r.queued[i] = true
			r.updating++
		}
		if r.queued[i] || !t.ready() {
			r.unready++
		}
		switch {
		case !t.exists() && !t.refused && !t.retry:
			r.create = append(r.create, i)
		case r.queued[i] && t.outdated() && t.writable():
			r.update = append(r.update, i)
		}
	}
}

// start starts updates in a group, first of unavailable Packages, because their update cannot
// reduce the availability.
func (r *rollout) start(from, to int) {
	for _, available := range []bool{false, true} {
		for i := from; i < to; i++ {
			t := &r.targets[i]
			if r.queued[i] || !t.outdated() || !t.writable() || t.available != available || !r.room(available) {
				continue
			}
			r.queued[i] = true
			r.update = append(r.update, i)
			r.updating++
			if available {
				r.unready++
			}
		}
	}
}

// room reports whether another update can start.
func (r *rollout) room(available bool) bool {
	return r.most == 0 || r.updating < r.most && (!available || r.unready < r.most)
}

// stays reports whether a Package keeps its place in the queue: until it is updated and stable. A
// Package gives up its place if the API server refuses it, or if it waits for an update by a
// template that changed since.
func stays(t *target, templateChanged bool) bool {
	switch {
	case !t.queued || !t.exists() || t.foreign:
		return false
	case t.updated:
		return !t.stable
	case t.refused:
		return false
	}
	return !t.stable || !templateChanged
}

// endOfGroup returns the index behind the group of a target.
func endOfGroup(targets []target, from int) int {
	to := from + 1
	for to < len(targets) && targets[to].group == targets[from].group {
		to++
	}
	return to
}

// ended reports whether all updates of a group have ended, and whether one succeeded if there were
// any. Failed Packages, and the ones that the API server refuses, do not hold up other groups.
func ended(group []target, queued []bool) bool {
	tried, succeeded := false, false
	for i := range group {
		t := &group[i]
		switch {
		case queued[i] && !(t.updated && t.failed):
			return false
		case queued[i], t.outdated() && t.refused:
			tried = true
		case t.outdated() && !t.deleting:
			return false
		case t.updated && t.stable:
			succeeded = true
		}
	}

	return succeeded || !tried
}

// removals returns the Packages to remove: as many at a time as are updated.
func removals(s snapshot) []int {
	going := 0
	for _, p := range s.surplus {
		if p.deleting {
			going++
		}
	}

	var remove []int
	for i, p := range s.surplus {
		if !p.deleting && !p.retry && (s.most == 0 || going < s.most) {
			remove = append(remove, i)
			going++
		}
	}

	return remove
}
