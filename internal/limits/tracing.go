package limits

import "time"

// Limits of traces.
const (
	// TraceQueue are the spans that wait for the collector, further ones are dropped: those of some twenty rollouts, in 4 MiB.
	TraceQueue = 2048
	// TraceRepeat is how long ago a rollout ended at most that a new leader exports once more: the former one may have ended before
	// it did.
	TraceRepeat = 5 * time.Minute
	// TraceLoad is how long the load before a revision takes at most.
	TraceLoad = 30 * 24 * time.Hour
	// TraceFlush is how long the manager waits at its end, without the Lease, for the collector to take the last spans.
	TraceFlush = 2 * time.Second
)
