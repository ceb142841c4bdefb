// Package queueing schedules work by two mechanisms. Both serve namespaces round robin and give
// each at most a share:
//
//	Queue      the requests of a controller: workers take them
//	Semaphore  everything else that is shared: places, or bytes
//
// The others are made of a Semaphore: Keyed has one for each host, Stages have one for short and
// one for long work, and Requests admits reconciles without a worker that waits.
package queueing
