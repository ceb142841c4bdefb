// Package livestate knows what is live: one watch per GroupKind over all
// namespaces, limited to the objects of the engine by their label, of which a
// compact record remains.
//
//	CRDs, APIServices ─► served ─► which kinds can be watched, their mappings
//	watch of a kind ─► Observe ─► records ─► Changed
//	our own writes ─► Remember, Gone ──┘
//
// Rules:
//
//   - Full objects are never kept. Observe sees each one and makes the record.
//   - Records are immutable once stored. Get returns the newest state known, by
//     the watch or by the response to a write; a late event never takes it back.
//   - A list that is older than what a watch has delivered is asked for again for a
//     while: an API server that is behind takes nothing back either.
//   - A watch starts when its API is served, stops when the API goes or the
//     kind is not used any more, and repeats failed requests, from 10 ms to 30 s
//     apart; to 2 s where there is no answer at all, and where the API server
//     answers and watches break again and again. A kind that fails does not affect
//     others.
//   - Synced means that the API answered a list and all records are in place;
//     before that nothing can be said about what is absent, and a write of a
//     custom resource may meet an API server that does not serve it yet.
//   - What is served is read from discovery once, and from the watch of CRDs
//     from then on; discovery is read again when an APIService or the API
//     server's version changes, and the version after a watch that did not last as
//     long as it was asked to. Nothing polls.
//
// Callbacks run on the goroutine of the watch: they must not block, and may
// call any method of the Cache.
package livestate
