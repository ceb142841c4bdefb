// Package tracing exports the rollout of each revision as a trace, over OTLP. It is off unless the environment names a collector, by
// variables that can be used: others are logged.
//
// Spans are made of what the status and the conditions of an ObjectSet record, by the events of the informers that the controllers have
// anyhow: the engine knows nothing of them, no request is sent to the API server, and the next leader continues the trace of the
// former. A trace has the UID of the revision as its ID, without dashes. The ID of a span is derived from the UID, too: one that two
// leaders export, since the former may have ended before it could, is the same span.
//
//	rollout            from the change of the Package, or else the creation of the revision, to its success
//	├─ load            from the change of the Package to the creation of the revision
//	├─ claim           from there until all objects are claimed
//	├─ phase           from its opening until all of its objects are ready, for each of the first 32
//	│  ├─ apply        until all objects are written
//	│  └─ wait         until they are ready, with the object that was waited for last
//	├─ hand-over       from the success until the revision before controls nothing any more, where it still did
//	└─ teardown        from the deletion until the revision is gone
//
// A teardown has no spans of its phases: the status says which of them are gone, but not when, and the last write of it comes before the
// last of them is.
//
// Names of spans are fixed. Attributes have names and numbers, each at most limits.MetricLabelBytes; no message, and nothing of the
// content of an object. Times are clamped: they are those of a status, which others may write.
//
// A collector that is slow, away or refuses delays nothing: spans are handed over without waiting, at most limits.TraceQueue of them
// wait in memory, and further ones are dropped. A metric counts these, and those that the collector refuses.
package tracing
