package limits

import "time"

// Limits of the controller of Packages.
const (
	// PackageWorkers is how many Packages are reconciled at a time. They wait for the
	// API server only.
	PackageWorkers = 16
	// PackageBackoffMin and PackageBackoffMax bound the delay of a Package after an error
	// of the API server.
	PackageBackoffMin = 100 * time.Millisecond
	PackageBackoffMax = time.Minute
	// ConflictRetry is the delay after a conflict; usually the event of the newer object
	// comes first. ConflictAttempts is how often a write of the deployment is tried in one
	// reconcile, each on the object as it is by then.
	ConflictRetry    = 50 * time.Millisecond
	ConflictAttempts = 3
	// LoadsPerHost is how many packages of one registry are loaded at a time, so that a
	// registry that hangs delays only its own packages.
	LoadsPerHost = 4
	// LoadBackoffMin and LoadBackoffMax bound the delay after a load that failed.
	LoadBackoffMin = 10 * time.Second
	LoadBackoffMax = 300 * time.Second
	// PackagesUnderway is how many packages and deployments may be reconciled, or wait for
	// that, for another package to be loaded: more than are reconciled at a time, to keep
	// the API server busy. Those that wait for an event do not count.
	PackagesUnderway = 64
	// AdmissionWait is for how long a load waits for that at most: rollouts that hang
	// delay no other package. AdmissionPoll is how often it checks.
	AdmissionWait = 2 * time.Second
	AdmissionPoll = 5 * time.Millisecond
	// TagIntervalMin is the least time between two resolutions of the tag of a package;
	// registries limit requests.
	TagIntervalMin = time.Minute
	// SlicesInFlight is how many slices of one package are written at a time.
	SlicesInFlight = 8
	// RepairInterval is the least time between two repairs of a deployment whose template
	// was edited or whose slices were removed: it takes a moment to observe the first.
	RepairInterval = 10 * time.Second
	// PackageStatusInterval coalesces the status writes of one Package between terminal
	// transitions. Where many packages are rolled out at once, what has merely begun is
	// reported later: PackageStatusShare for each of them, so that such statuses of all
	// take a tenth of the API server's time, up to PackageStatusMax.
	PackageStatusInterval = time.Second
	PackageStatusShare    = 50 * time.Millisecond
	PackageStatusMax      = 30 * time.Second
	// RetryValue is the size of the annotation package-operator.run/retry, which is copied
	// to the status.
	RetryValue = 253
	// EventNote is the length of an event's note that API servers accept.
	EventNote = 1024
)
