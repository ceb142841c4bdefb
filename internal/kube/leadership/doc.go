// Package leadership makes sure that a manager writes only while it holds the
// Lease.
//
// NewLock returns the lock for controller-runtime's leader election. It notes when the last acquire
// or renewal that succeeded was sent. The Guard refuses every request that could write once that is
// longer ago than the renew deadline, directly before the request leaves the process: a manager
// that was suspended, starved or cut off stops by itself before another one can lead.
//
// Times are read from the monotonic clock and, because that one stands still
// while a machine is suspended, from the wall clock too: the longer one counts.
//
// The Lease is also how a process notices that etcd was restored from a backup.
// Where revisions were not raised with it, a watch that goes on from a revision
// of before hears nothing until revisions have caught up, and what the caches
// hold is wrong for as long. But the Lease, which the leader renews and a standby
// reads every two seconds, holds an older renewal then. The process ends, and the
// next one reads everything. The Guard also refuses writes from a renewal that
// failed to the next one that succeeds, so nothing is written between an outage
// and that look at the Lease. A backup younger than the last renewal is not
// noticed.
//
// The Lease has Package Operator's name, so that both engines never lead
// together. The Lease client must not be guarded: it would never get to lead.
package leadership
