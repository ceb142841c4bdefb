package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// AppliedObjects is the engine's memory of objects in this process.
type AppliedObjects map[objects.Key]*Applied

// of returns the record of key, or an empty one.
func (m AppliedObjects) of(key objects.Key) Applied {
	if r := m[key]; r != nil {
		return *r
	}
	return Applied{}
}

// At returns the record of key for writing.
func (m AppliedObjects) At(key objects.Key) *Applied {
	r := m[key]
	if r == nil {
		r = &Applied{}
		m[key] = r
	}
	return r
}

// Applied is the engine's memory of one object.
type Applied struct {
	// Content and Labels are digests of the template that was written or verified last; zero if
	// neither happened in this process.
	Content, Labels objects.Digest
	// Template names the full template behind Baseline.
	Template objects.Digest
	// Baseline is the projection of the response to the engine's last write.
	Baseline objects.Digest
	// Converted is the projection in the version of the watch, if the template is in another one.
	// The object was last found to show Baseline then.
	Converted objects.Digest
	// UID is the UID of the object that was written or verified.
	UID types.UID
	// Gone means that the object is confirmed to be absent.
	Gone bool
	// ReadAt is when the object was last read around the watch.
	ReadAt time.Time

	// Failure is the error of the last step, for the content it was tried with.
	Failure *Failure
	// Contention is nil if the object was never corrected.
	Contention *Contention
}

// Contention records corrections of one object. It is immutable.
type Contention struct {
	// Corrections counts corrections shortly after another one, of changes, takeovers or deletions
	// by others. Corrected is when the last one happened.
	Corrections int
	Corrected   time.Time
	// OtherManager is the other field manager of the last drift, and Fields are the fields that it
	// set, if known.
	OtherManager string
	Fields       []string
}

// freeCorrections is the number of corrections without a pause.
const freeCorrections = 5

// Impends reports whether a pause follows the next correction.
func (c *Contention) Impends() bool { return c != nil && c.Corrections >= freeCorrections-1 }

// Throttled reports whether a pause precedes the next correction.
func (c *Contention) Throttled() bool { return c != nil && c.Corrections >= freeCorrections }

// CountCorrection records a correction of fields that another manager wrote; otherManager is "" if
// unknown. A correction that follows another one within a quarter of an hour is contention with
// another writer.
func (r *Applied) CountCorrection(otherManager string, fields []string, now time.Time) {
	n := 1
	if f := r.Contention; f != nil && now.Sub(f.Corrected) <= 15*time.Minute {
		n += f.Corrections
	}
	r.Contention = &Contention{Corrections: n, Corrected: now, OtherManager: otherManager, Fields: fields}
}

// Failure is why a step did not succeed.
type Failure struct {
	// Content is the content of the desired object that failed. Other content is tried at once.
	Content objects.Digest
	// UID is the UID of the live object that the step was for, or "" if there was none. The failure
	// does not apply to other objects.
	UID types.UID
	// Message names the object, the cause and the remedy.
	Message string
	// Reason is the reason for a right that the account lacks; empty for other causes.
	Reason string
	// Collision means that the object has another controller.
	Collision bool
	// Immutable means that a change of an immutable field was refused.
	Immutable bool
	// Preflight means that the object was refused before it was written. No object of its phase is
	// written then.
	Preflight bool
	// Until is when the step is tried again.
	Until time.Time
	// Attempts counts consecutive failures.
	Attempts int
}

// failed reports whether the last attempt to write d over live failed and the next one is not due
// yet.
func (r *Applied) failed(d *objects.Desired, live *objects.Observed, now time.Time) bool {
	return r.Failure != nil && r.Failure.Content == d.Content && r.Failure.UID == uidOf(live) && now.Before(r.Failure.Until)
}

func uidOf(live *objects.Observed) types.UID {
	if live == nil {
		return ""
	}
	return live.UID
}

// preflightFailed reports whether the object was refused with the content of d, so that its phase
// must not be entered.
func (r *Applied) preflightFailed(d *objects.Desired) bool {
	return r.Failure != nil && r.Failure.Preflight && r.Failure.Content == d.Content
}

// again reports whether a write of d would restore the former content.
func (r *Applied) again(d *objects.Desired) bool { return r.Content == d.Content }
