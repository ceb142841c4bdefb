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
	// StatusBytes is the size of a status, as JSON. It is decoded, compared and kept
	// by everybody who watches its kind, and etcd stores it anew with each change.
	StatusBytes = 32 << 10
	// JobRecords is how many Jobs that have finished status.jobs remembers: up to
	// 280 bytes each, of which nothing can be left out.
	JobRecords = 50
	// PhaseBytes is the size of all of status.phases, the record of how far a
	// rollout is, of which nothing can be left out.
	PhaseBytes = 14 << 10
	// ControllerOfBytes is about the size of status.controllerOf, which is for
	// readers: those of the first objects, 150 or so.
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
	// ErrorsUnreported is for how long passes of an owner may fail for reasons that
	// mostly pass by themselves before its status says so.
	ErrorsUnreported = 10 * time.Second
	// RestoreGrace is how long a starting manager tries again to restore the claims of
	// an owner that cannot be read before it goes on with the others.
	RestoreGrace = 5 * time.Second
	// SlicesMissing is how many slices of a revision that do not exist are asked for
	// at a time, so that one set that names thousands costs no more than others.
	SlicesMissing = 8
	// OwnersAbove is how many owners are followed upwards from a deployment, for
	// packages that bring packages: nobody has as many levels.
	OwnersAbove = 64
	// MessageBytes bounds one condition message; API servers accept 32 KiB.
	MessageBytes = 4 << 10
	// HeldBytes bounds what is kept of why a deletion hangs, and HeldMessageBytes each
	// condition of it: ten such objects fit into one message.
	HeldBytes        = 400
	HeldMessageBytes = 160
	// LineRunes is how long a text is that says why something waits or is refused, in
	// a condition or on a terminal: what is longer is not read. With the time and the
	// indentation in front of it a line has at most 300. The whole of it is in
	// status.blocking.
	LineRunes = 280
	// SettlingTime is how long an object that was ready may take to be so again at
	// another generation, before it makes its package unavailable. Most controllers
	// need milliseconds to look at one, and some seconds to act on it; where one of
	// the control plane dies, another takes its Lease over after 15 to 17 s.
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

// RetryValue is how long the value of the annotation package-operator.run/retry may
// be, which a status repeats: a time is shorter.
const RetryValue = 253

// StatusInterval coalesces status writes that only count further; transitions
// are written at once. For as long a watch may be late with our own write before a
// status says so.
const StatusInterval = time.Second
