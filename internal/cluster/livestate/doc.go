// Package livestate records what is live: one watch per GroupKind over all namespaces,
// limited to the objects of the engine by their label.
//
//		discovery ─► which kinds can be watched, their mappings
//		watch of a kind ─► Observe ─► records ─► Changed
//		writes of this manager ─► Remember, Gone ──┘
//
//	  - Full objects are not kept: Observe sees each one and returns its record.
//	  - Records are immutable once stored. Get returns the newest known state, by the
//	    watch or by the response to a write; a late event never takes it back, nor does a
//	    list that is older than what the watch has delivered.
//	  - A watch starts when its API is served, and stops when the API goes or the kind is
//	    not used any more. A kind that fails does not affect others.
//	  - Synced means that the API answered a list and all records are in place; before that
//	    nothing is known to be absent, and a write of a custom resource may meet an API
//	    server that does not serve it yet.
//
// Callbacks run on the goroutine of the watch: they must not block, and may call any
// method of the Cache.
package livestate
