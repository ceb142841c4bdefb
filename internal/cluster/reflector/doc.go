// Package reflector keeps stores in step with the API server by client-go's
// Reflector, which lists and watches. It adds
//
//   - consistent lists, because a list proves absence, and none older than the states
//     that were delivered before ([Progress]);
//   - a report of each request, for the state of a kind;
//   - pauses of at most limits.WatchBackoffMax after an outage;
//   - requests without the retries of client-go's REST client, which wait for a
//     second although a new API needs only some milliseconds;
//   - the same for client-go's informers ([Ordered]);
//   - [Events], which decodes the events of a watch only as far as needed.
package reflector
