package limits

import (
	"time"
)

// Limits of the rollout engine.
const (
	ForeignOwners     = 16               // foreign owner references of a deployment that are followed, because its author writes them
	WritesInFlight    = 16               // internal: concurrent writes to a cluster; 16 keep two cores busy
	ImpliedTries      = 20               // dry runs of one object, each with fewer foreign fields; a client can write any number of these
	WritesOfNamespace = 12               // internal: concurrent writes for one namespace, so that a slow webhook there leaves some for others
	Reviews           = 200              // permission checks before a revision is claimed; an author chooses the kinds and namespaces
	ReviewBytes       = 256 << 10        // rules in one answer, which are compared with each right
	Strays            = 1000             // internal: objects with an owner's name that are removed at a time; any client can create them
	BlockingObjects   = 10               // objects that a status names; the others are counted
	StatusBytes       = 32 << 10         // a status as JSON, which every watcher decodes and caches
	JobRecords        = 50               // finished Jobs in status.jobs, at up to 280 bytes each
	PhaseBytes        = 14 << 10         // status.phases, which is never truncated
	ControllerOfBytes = 14 << 10         // status.controllerOf, about 150 objects
	RetainedBytes     = 14 << 10         // status.retained, about 100 objects
	MappedConditions  = 50               // mapped conditions of a revision
	SliceThreshold    = 8 << 10          // objects of a revision as JSON without slices; each costs 0.3 ms in every write of the set
	SliceBytes        = 64 << 10         // one slice; a larger object has its own
	SlicelessBytes    = 384 << 10        // internal: all objects as JSON that stay without slices on demand: a quarter of etcd's limit
	SlicesOfOneObject = 4000             // internal: slices on demand with one object each; their names take 83 bytes in every revision
	SecretSliceBytes  = 1<<20 - 1<<10    // a Secret of a revision; API servers accept 1 MiB with keys
	SlicesAsked       = 8                // internal: slices that a starting manager reads one by one; more are listed
	SlicePage         = 50               // internal: slices in a page, 3 MiB
	ErrorsUnreported  = 10 * time.Second // internal: time before a transient error of an owner is reported
	SlicesMissing     = 8                // internal: missing slices of a revision that one reconcile looks up
	Ancestors         = 64               // nested packages above a deployment
	MessageBytes      = 4 << 10          // a condition message; API servers accept 32 KiB
	ClassPhaseBytes   = 1 << 20          // an ObjectSetPhase as JSON with all objects of its phase; API servers accept little more
	HeldBytes         = 400              // internal: the reason why a deletion hangs
	LineRunes         = 280              // internal: a line of a condition or terminal; the full text is in status.blocking
	ConditionRunes    = 4 * LineRunes    // internal: a condition about objects: the objects and their messages in its first half, then the remedy; the message of an agent, which ends with one, has both
	ReadinessGrace    = 20 * time.Second // settling time of an object with a new generation; another controller takes over a Lease after 17 s
)

// Workers of the controller of deployments and sets.
const (
	// deployments and sets that are reconciled at a time: they mostly wait for the API
	// server, and the pool bounds their writes
	DeploymentWorkers = 24
	PhaseWorkers      = 8                                // ObjectSetPhases in addition: both together take as much memory, and load the API server as much, as 32 owners
	AgentWorkers      = DeploymentWorkers + PhaseWorkers // ObjectSetPhases of an agent, which has no other owners
	DeploymentPasses  = 40                               // of one reconcile; the rest comes after other owners
)

// Workers of all controllers.
const (
	// after which a worker that has one request, and makes no progress in it, is stuck:
	// each of its requests to an API server ends within WriteTimeout
	WorkerHung = 5 * time.Minute
	StackBytes = 256 << 10 // of the stacks that are logged then; equal stacks of many goroutines are shown once
)

// StatusInterval is the pause between writes of a status that only count; it reports a watch that
// is later.
const StatusInterval = time.Second
