package repositories

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
)

// report writes the statuses that changed.
func (s *reconciliation) report(ctx context.Context) error {
	var errs []error
	for _, v := range s.views {
		if err := s.reportOne(ctx, v); err != nil && !apply.IsAbsent(err) {
			errs = append(errs, fmt.Errorf("write the status of %s: %w", v.repository.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// reportOne writes the status of a repository if it has changed.
func (s *reconciliation) reportOne(ctx context.Context, v *view) error {
	before, after := v.repository.RepositoryStatus().DeepCopy(), statusOf(*v)
	st := s.states[v.repository.GetName()]
	if equality.Semantic.DeepEqual(before, after) {
		st.unreported = nil
		return nil
	}

	if s.Wait(startDelay(*v)) {
		return nil
	}

	*v.repository.RepositoryStatus() = *after
	if err := statuswriter.Write(ctx, s.Client, v.repository); err != nil {
		return err
	}

	st.unreported = nil
	s.Fresh.Put(v.repository)
	statuswriter.Record(s.Events, v.repository, transitionEvents(before, after)...)
	return nil
}

// startDelay returns for how long the start of a fetch is not reported.
func startDelay(v view) time.Duration {
	switch {
	case !v.fetching():
		return 0
	case v.attempt != nil && !v.attempt.Done && v.attempt.In == v.input:
		return limits.RepositoryStatusDelay - v.now.Sub(v.attempt.Started)
	}
	return limits.RepositoryStatusDelay
}

// transitionEvents returns the events of a transition: a new content, a failure of another kind, a
// conflict.
func transitionEvents(before, after *corev1alpha1.PackageRepositoryStatus) []statuswriter.Event {
	var all []statuswriter.Event
	is := meta.FindStatusCondition(after.Conditions, corev1alpha1.ConditionReady)
	was := meta.FindStatusCondition(before.Conditions, corev1alpha1.ConditionReady)
	if after.Artifact != nil && (before.Artifact == nil || before.Artifact.Digest != after.Artifact.Digest) && is != nil {
		all = append(all, statuswriter.Event{Kind: corev1.EventTypeNormal, Reason: corev1alpha1.ReasonFetched, Action: "Fetch", Note: is.Message})
	}

	if is != nil && is.Status == metav1.ConditionFalse && (was == nil || was.Reason != is.Reason) {
		switch is.Reason {
		case corev1alpha1.ReasonProgressing, corev1alpha1.ReasonPaused: // no failures
		default:
			all = append(all, statuswriter.Event{Kind: corev1.EventTypeWarning, Reason: is.Reason, Action: "Fetch", Note: is.Message})
		}
	}

	c := meta.FindStatusCondition(after.Conditions, corev1alpha1.ConditionConflicting)
	if c != nil && !meta.IsStatusConditionTrue(before.Conditions, corev1alpha1.ConditionConflicting) {
		all = append(all, statuswriter.Event{Kind: corev1.EventTypeWarning, Reason: c.Reason, Action: "Publish", Note: c.Message})
	}
	return all
}
