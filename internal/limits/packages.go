package limits

import "time"

// Workers and pauses of the controller of Packages.
const (
	PackageWorkers        = 16                     // Packages that are reconciled at a time; they wait for the API server only
	PackageShare          = 12                     // of these that are of one namespace: a webhook that is slow there leaves workers for others
	PackageBackoffMin     = 100 * time.Millisecond // after an error of the API server
	PackageBackoffMax     = time.Minute
	ConflictRetry         = 50 * time.Millisecond // after a conflict; usually the event of the newer object comes first
	ConflictAttempts      = 3                     // to write the deployment in one reconcile, and to resolve dependencies while their inputs change
	LoadsPerHost          = 4                     // packages of one registry and namespace that are loaded at a time, so that one that hangs delays only its own
	LoadsPerHostInAll     = 16                    // the same of all namespaces
	PackageLoadBurst      = 20                    // loads of a generation in a row; a package that writes a source of its own never comes to rest
	PackageLoadInterval   = 2 * time.Second       // between loads after that
	LoadBackoffMin        = 10 * time.Second      // after a load that failed
	LoadBackoffMax        = 300 * time.Second
	InterruptedLoadMin    = 10 * time.Second      // after a manager that ended during a large load: all others come first
	InterruptedLoadMax    = time.Hour             // the same, doubled with each further one
	PackagesUnderway      = 64                    // packages, deployments and ObjectSetPhases in reconciles or queues, beyond which no load starts
	PackagesUnderwayOwn   = 8                     // of one namespace, up to which it does not wait for the work of others
	AdmissionWait         = 2 * time.Second       // of a load for that: rollouts that hang delay no other package
	TagIntervalMin        = time.Minute           // between resolutions of a tag; registries limit requests
	SlicesInFlight        = 8                     // slices of one package that are written or deleted at a time
	RepairInterval        = 10 * time.Second      // between repairs of a deployment: it takes a moment to observe one
	PackageStatusInterval = time.Second           // between status writes of a Package, apart from terminal transitions
	PackageStatusShare    = 50 * time.Millisecond // the same for a change of progress alone, times the packages that are rolled out
	PackageStatusMax      = 30 * time.Second      // up to this, so that it takes a tenth of the API server
)

// Limits of annotations.
const (
	RetryValue      = 253  // bytes of the annotation package-operator.run/retry, which is copied to the status
	RequiredByShown = 20   // dependents that a generated package names in labels
	EventNote       = 1024 // internal: bytes of an event's note that API servers accept
)
