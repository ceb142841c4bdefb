package packages

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// A load that takes much memory or time can end the manager. The status records it before it
// starts, and the write that reports its end removes the record. A process that finds the record of
// another process waits, longer each time, while all other Packages are reconciled.

// beginRecorded starts a large load that the status has a record of.
func (s *reconciliation) beginRecorded() {
	a, record := s.attempt, s.pkg.PackageStatus().Load
	if a == nil || a.Out.Begin == nil || record == nil || record.Holder != s.process || record.SpecHash != a.In.Fingerprint.Spec {
		return
	}
	s.attempt = s.loads.Resume(s.state.load, a)
}

// afterInterruption decides from the record of the last load whether a load has to wait, and
// returns its record; nil if it does not. Only the same spec waits. The record of an ended process
// gets one more interruption.
func afterInterruption(last *corev1alpha1.LoadRecord, v view) *corev1alpha1.LoadRecord {
	switch {
	case last == nil || last.SpecHash != v.fingerprint.Spec:
		return nil
	case last.Holder != "" && last.Holder != v.process:
		count := min(max(last.Interruptions, 0), 1<<30) + 1
		until := metav1.NewTime(v.now.Add(v.pace.Of(interruptedBackoff(count)))).Rfc3339Copy()
		return &corev1alpha1.LoadRecord{SpecHash: last.SpecHash, Interruptions: count, NotBefore: &until}
	case last.NotBefore != nil && v.now.Before(last.NotBefore.Time):
		return last.DeepCopy()
	}
	return nil
}

// interruptedBackoff returns the pause after a number of loads that ended with their process. It
// doubles, because such a load can be the reason for the end.
func interruptedBackoff(count int32) time.Duration {
	return min(limits.InterruptedLoadMin<<min(count-1, 20), limits.InterruptedLoadMax)
}

// recordOf returns the record of the load for the status.
func recordOf(v view) *corev1alpha1.LoadRecord {
	last, a := v.pkg.PackageStatus().Load, v.attempt
	if last != nil && last.SpecHash != v.fingerprint.Spec && v.loadsPresent() {
		last = nil
	}

	var waits *interrupted
	switch {
	case a == nil:
	case a.Out.Large && (!a.Done || v.step == stepDeploy && v.writeErr != nil):
		record := &corev1alpha1.LoadRecord{SpecHash: a.In.Fingerprint.Spec, Holder: v.process}
		if last != nil && last.SpecHash == record.SpecHash {
			record.Interruptions = last.Interruptions
		}
		return record
	case v.step == stepWait && errors.As(a.Err, &waits):
		return waits.record
	}

	switch {
	case v.step == stepSync, v.step == stepRefuse, v.step == stepDepend, v.step == stepPermit, v.step == stepDeploy && v.writeErr == nil:
		return nil // it was loaded
	case last == nil || last.Holder != v.process:
		return last
	case last.Interruptions == 0:
		return nil
	}

	return &corev1alpha1.LoadRecord{SpecHash: last.SpecHash, Interruptions: last.Interruptions} // it failed for another reason
}

// loadsPresent reports whether the present spec is being loaded.
func (v view) loadsPresent() bool {
	return v.step == stepLoad || v.step == stepWait || v.step == stepDeploy
}

// interrupted is why a load waits.
type interrupted struct {
	record *corev1alpha1.LoadRecord
	limit  int64
}

// Error describes the interruption, the remedy, and the time of the next attempt.
func (e *interrupted) Error() string {
	times := "once"
	if e.record.Interruptions > 1 {
		times = fmt.Sprintf("%d times", e.record.Interruptions)
	}
	raise := "raise the memory limit of the manager"
	if e.limit > 0 {
		raise = fmt.Sprintf("raise GOMEMLIMIT (%d MiB) and the memory limit of the manager", e.limit>>20)
	}
	return fmt.Sprintf("the manager ended %s while it loaded this package, for lack of memory unless it was stopped. The next attempt is at %s. "+
		"Make the package smaller, or %s", times, e.record.NotBefore.UTC().Format(time.RFC3339), raise)
}
