package limits

import "time"

// Limits of traces.
const (
	TraceQueue       = 2048                // spans that wait for the collector, in 4 MiB: those of some twenty rollouts; further ones are dropped
	TraceLogInterval = time.Minute         // between two lines of the log about dropped spans
	TraceRepeat      = 5 * time.Minute     // since the end of a rollout that a new leader exports once more: the former one may have ended before it did
	TraceLoad        = 30 * 24 * time.Hour // of the load before a revision
	TraceFlush       = 2 * time.Second     // of the wait, at the end and without the Lease, for the collector to take the last spans
)
