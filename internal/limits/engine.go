package limits

import "time"

// Limits of the rollout engine.
const (
	// WritesInFlight bounds concurrent writes to one cluster. The API server
	// admits 200 mutating requests by default; 16 keep two cores busy.
	WritesInFlight = 16
	// LookPauses is how many times as long as a look for objects that exist already
	// the next one in that namespace has to wait, up to LookPauseMax: looks of many
	// packages that are installed together take a tenth of the time, and a package
	// that comes alone does not wait.
	LookPauses   = 9
	LookPauseMax = 250 * time.Millisecond
	// BlockingObjects is how many objects a status names. The rest is counted.
	BlockingObjects = 10
	// StatusBytes is the size of a status as JSON: every watcher decodes and caches it,
	// and etcd stores it again with each change.
	StatusBytes = 32 << 10
	// JobRecords is how many finished Jobs status.jobs records, of up to 280 bytes each.
	// They are never truncated.
	JobRecords = 50
	// PhaseBytes is the size of status.phases, the record of a rollout's progress, which
	// is never truncated.
	PhaseBytes = 14 << 10
	// ControllerOfBytes is about the size of status.controllerOf: 150 objects or so.
	ControllerOfBytes = 14 << 10
	// MappedConditions is how many conditions of its objects a revision reports.
	MappedConditions = 50
	// ControllerOfInline is up to how many entries status.controllerOf goes
	// along with every status write, and ControllerOfLast up to how
	// many once the last phase is open: a gate waits for each of the writes before.
	ControllerOfInline = 20
	ControllerOfLast   = 100
	// SliceThreshold is the size of all objects of a revision, in bytes of
	// JSON, beyond which they are kept in slices. An object that is
	// kept in a set costs the API server a third of a millisecond of processor time
	// in every write of the set, statuses included; a slice of its own is written
	// once. So about twenty objects cost as much either way.
	SliceThreshold = 8 << 10
	// SliceBytes is the most that one slice holds; a larger object has a slice
	// of its own.
	SliceBytes = 64 << 10
	// SecretSliceBytes is the most that a Secret holds for a revision, which is one
	// larger object then: API servers accept 1 MiB of data, names and key included.
	SecretSliceBytes = 1<<20 - 1<<10
	// SlicesAsked is up to how many slices a starting manager asks for one by one;
	// more are listed, SlicePage at a time: 3 MiB at most in one answer.
	SlicesAsked = 8
	SlicePage   = 50
	// ErrorsUnreported is how long passes of an owner may fail for transient reasons
	// before its status reports it.
	ErrorsUnreported = 10 * time.Second
	// RestoreGrace is how long a starting manager retries to restore the claims of an
	// owner that cannot be read.
	RestoreGrace = 5 * time.Second
	// SlicesMissing is after how many missing slices of a revision a pass stops looking
	// for more, so that a set that names thousands is cheap.
	SlicesMissing = 8
	// Ancestors is how many ancestors of a deployment are followed, for packages that
	// contain packages.
	Ancestors = 64
	// MessageBytes bounds one condition message; API servers accept 32 KiB.
	MessageBytes = 4 << 10
	// HeldBytes bounds the reason why a deletion hangs, and HeldMessageBytes each
	// condition in it: ten such objects fit into one message.
	HeldBytes        = 400
	HeldMessageBytes = 160
	// LineRunes bounds a line that says why something waits or is refused, in a
	// condition or on a terminal, where time and indentation make it up to 300. The full
	// text is in status.blocking.
	LineRunes = 280
	// SettlingTime is how long an object that was ready may take to be ready at another
	// generation before its package becomes unavailable. Controllers mostly need seconds;
	// the Lease of one that dies is taken over after 15 to 17 s.
	SettlingTime = 20 * time.Second
	// ProgressDeadline is the default of progressDeadlineSeconds.
	ProgressDeadline = 600 * time.Second
	// RevisionHistory is the default of revisionHistoryLimit.
	RevisionHistory = 10
	// PackageStatusInterval coalesces the status writes of one Package between
	// terminal transitions. Where many packages are rolled out at once,
	// what has merely begun is kept back for longer: PackageStatusShare for each of
	// them, so that such statuses of all take a tenth of the API server's time, up
	// to PackageStatusMax.
	PackageStatusInterval = time.Second
	PackageStatusShare    = 50 * time.Millisecond
	PackageStatusMax      = 30 * time.Second
)

// RetryValue is the size of the annotation package-operator.run/retry, which is copied to
// the status.
const RetryValue = 253

// StatusInterval coalesces status writes that only count further; transitions
// are written at once. For as long a watch may be late with our own write before a
// status says so.
const StatusInterval = time.Second
