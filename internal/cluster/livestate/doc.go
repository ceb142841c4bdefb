// Package livestate records live objects: one watch per GroupKind over all namespaces,
// limited to managed objects by their label.
//
//		discovery ─► which kinds can be watched, their mappings
//		watch of a kind ─► Observe ─► records ─► Changed
//		writes of this manager ─► Remember, Gone ──┘
//
//	  - Full objects are not kept: Observe sees each one and returns its record.
//	  - Records are immutable once stored. Get returns the newest known state, by the
//	    watch or by the response to a write. Neither a late event nor an older list takes
//	    it back.
//	  - A watch starts when its API is served, and stops when the API is removed or the kind is no
//	    longer used. A kind that fails does not affect others.
//	  - Synced means that a list was completed. Before that, no object is known to be absent, and
//	    the API server might not serve a custom resource yet.
//
// Callbacks run on the goroutine of the watch: they must not block, and may call any
// method of the Cache.
package livestate
