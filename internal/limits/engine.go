package limits

import (
	"time"
)

// Limits of the rollout engine.
const (
	ForeignOwners     = 16               // owner references of a deployment to kinds of others that are followed: the author of the deployment writes them
	OwnerWatches      = 16               // of single foreign owners of the objects in one namespace; over that, one of all objects of their kind there
	WritesInFlight    = 16               // concurrent writes to a cluster; 16 keep two cores busy
	ImpliedTries      = 20               // dry runs of one object, each with fewer fields of others; a client can write any number of these
	WritesOfNamespace = 12               // of these, for the owners of one namespace: a webhook that is slow there leaves some to others
	Reviews           = 200              // questions about the rights of an account before a revision is claimed: an author chooses kinds and namespaces
	ReviewBytes       = 256 << 10        // of the rules in an answer, which are compared with each right
	Strays            = 1000             // of an owner that are removed at a time: objects that name it, which any client can make
	BlockingObjects   = 10               // objects that a status names; the rest is counted
	StatusBytes       = 32 << 10         // of a status as JSON, which every watcher decodes and caches
	JobRecords        = 50               // finished Jobs in status.jobs, of up to 280 bytes each
	PhaseBytes        = 14 << 10         // of status.phases, which is never truncated
	ControllerOfBytes = 14 << 10         // of status.controllerOf, about: 150 objects or so
	RetainedBytes     = 14 << 10         // of status.retained, about: 100 objects or so, which a revision keeps under archivalPolicy: Release
	MappedConditions  = 50               // of its objects that a revision reports
	SliceThreshold    = 8 << 10          // of all objects as JSON without slices: they cost 0.3 ms each in every write of a set
	SliceBytes        = 64 << 10         // of one slice; a larger object has a slice of its own
	SlicelessBytes    = 384 << 10        // of all objects as JSON that stay without slices on demand: a quarter of what etcd accepts
	SlicesOfOneObject = 4000             // of a package where each object has a slice on demand, whose names have 83 bytes each in every revision
	SecretSliceBytes  = 1<<20 - 1<<10    // of a Secret of a revision: API servers accept 1 MiB with keys
	SlicesAsked       = 8                // slices that a starting manager reads one by one; more are listed
	SlicePage         = 50               // slices in a page, 3 MiB
	ErrorsUnreported  = 10 * time.Second // for which transient errors of an owner are not reported
	SlicesMissing     = 8                // missing slices of a revision that one reconcile looks up
	Ancestors         = 64               // of a deployment that are followed, for packages that contain packages
	MessageBytes      = 4 << 10          // of a condition message; API servers accept 32 KiB
	ClassPhaseBytes   = 1 << 20          // of an ObjectSetPhase as JSON, which has all objects of its phase: API servers accept little more
	HeldBytes         = 400              // of the reason why a deletion hangs
	LineRunes         = 280              // of a line of a condition or terminal; the full text is in status.blocking
	ConditionRunes    = 4 * LineRunes    // of a condition about objects: the objects and their messages in its first half, then the remedy; the message of an agent, which ends with one, has both
	ReadinessGrace    = 20 * time.Second // grace period of readiness at another generation; the Lease of a dead controller is taken over after 17 s
)

// Workers of the controller of deployments and sets.
const (
	// deployments and sets that are reconciled at a time: they mostly wait for the API
	// server, and the pool bounds their writes
	DeploymentWorkers = 24
	PhaseWorkers      = 8                                // ObjectSetPhases beside them: both together take memory, and ask the API server, as 32 owners
	AgentWorkers      = DeploymentWorkers + PhaseWorkers // ObjectSetPhases of an agent, which has no other owners
	DeploymentPasses  = 40                               // of one reconcile; the rest comes after other owners
)

// Workers of all controllers.
const (
	// after which a worker that has one request, and makes no progress in it, is stuck:
	// each of its requests to an API server ends within WriteTimeout
	WorkerHung = 5 * time.Minute
	StackBytes = 256 << 10 // of the stacks that are logged then; those of many goroutines are equal and shown once
)

// StatusInterval is the pause between writes of a status that only count; it reports a watch that is later.
const StatusInterval = time.Second
