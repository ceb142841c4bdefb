// Package queueing schedules work. A Queue knows how many requests a controller has, so
// that less urgent work can wait. Levels are for short and long work, which shares Processors,
// Keyed bounds the work for each host. Requests admits those of each namespace in turn, and no
// worker waits with them.
package queueing
