// Package queueing schedules work by two mechanisms, both in round robin of namespaces, of which each has at most a share:
//
//	Queue      the requests of a controller: workers take them
//	Semaphore  what waits for anything else that is shared: places, or bytes
//
// The others are made of a Semaphore: Keyed has one for each host, Stages have one for short and one for long work, and Requests admits
// reconciles without a worker that waits.
package queueing
