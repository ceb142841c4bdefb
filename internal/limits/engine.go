package limits

import (
	"time"
)

// Limits of the rollout engine.
const (
	// WritesInFlight bounds concurrent writes to a cluster; 16 keep two cores busy.
	WritesInFlight = 16
	// LookPauses is how many times as long as a lookup of existing objects the next one in
	// that namespace waits, up to LookPauseMax: lookups take a tenth of the time at most.
	LookPauses   = 9
	LookPauseMax = 250 * time.Millisecond
	// BlockingObjects is how many objects a status names. The rest is counted.
	BlockingObjects = 10
	// StatusBytes is the size of a status as JSON, which every watcher decodes and caches.
	StatusBytes = 32 << 10
	// JobRecords is how many finished Jobs status.jobs records, of up to 280 bytes each.
	JobRecords = 50
	// PhaseBytes is the size of status.phases, which is never truncated.
	PhaseBytes = 14 << 10
	// ControllerOfBytes is about the size of status.controllerOf: 150 objects or so.
	ControllerOfBytes = 14 << 10
	// MappedConditions is how many conditions of its objects a revision reports.
	MappedConditions = 50
	// ControllerOfInline is how many entries of status.controllerOf are written with every
	// status, ControllerOfLast how many once the last phase is open.
	ControllerOfInline = 20
	ControllerOfLast   = 100
	// SliceThreshold is the JSON size of all objects beyond which they are kept in slices. An object
	// in a set costs the API server 0.3 ms per write of the set; a slice is written once.
	SliceThreshold = 8 << 10
	// SliceBytes is the size of one slice; a larger object has a slice of its own.
	SliceBytes = 64 << 10
	// SecretSliceBytes is the size of a Secret of a revision: API servers accept 1 MiB with keys.
	SecretSliceBytes = 1<<20 - 1<<10
	// SlicesAsked is how many slices a starting manager reads one by one; more are listed,
	// SlicePage (3 MiB) at a time.
	SlicesAsked = 8
	SlicePage   = 50
	// ErrorsUnreported is how long transient errors of an owner are not reported.
	ErrorsUnreported = 10 * time.Second
	// RestoreGrace is how long claims of an owner that cannot be read are retried at start.
	RestoreGrace = 5 * time.Second
	// SlicesMissing is how many missing slices of a revision are looked up in one reconcile.
	SlicesMissing = 8
	// Ancestors of a deployment that are followed, for packages that contain packages.
	Ancestors = 64
	// MessageBytes bounds one condition message; API servers accept 32 KiB.
	MessageBytes = 4 << 10
	// HeldBytes bounds the reason why a deletion hangs, HeldMessageBytes each condition in it.
	HeldBytes        = 400
	HeldMessageBytes = 160
	// LineRunes bounds a line of a condition or terminal. The full text is in status.blocking.
	LineRunes = 280
	// SettlingTime is the grace period for a ready object to be ready at another
	// generation. The Lease of a controller that dies is taken over after 15 to 17 s.
	SettlingTime = 20 * time.Second
	// ProgressDeadline is the default of progressDeadlineSeconds.
	ProgressDeadline = 600 * time.Second
	// RevisionHistory is the default of revisionHistoryLimit.
	RevisionHistory = 10
)

// StatusInterval coalesces status writes that only count, and is how late a watch may be
// with the manager's own write before a status reports it.
const StatusInterval = time.Second

// Limits of events.
const (
	// EventsQueued is how many events wait to be sent; a thousand take 2 MiB.
	EventsQueued = 1000
	// EventsInFlight bounds concurrent requests for events: they come after all else.
	EventsInFlight = 4
	// EventPatience is how long an event waits for other work, checked every EventYield.
	EventPatience = 5 * time.Second
	EventYield    = 50 * time.Millisecond
	// EventAttempts and EventRetry: an event without response is sent again for two minutes.
	EventAttempts = 12
	EventRetry    = 10 * time.Second
)
