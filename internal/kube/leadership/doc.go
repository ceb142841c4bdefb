// Package leadership makes sure that a manager writes only while it holds the Lease.
//
// NewLock returns the lock for controller-runtime's leader election. It records the time at which
// the last successful acquire or renewal was sent. Once that is longer ago than the renew deadline,
// the Guard refuses every request that could write, directly before the request leaves the process.
// So a manager that was suspended, starved or cut off stops by itself before another one can lead.
//
// The elapsed time is the longer one by the monotonic clock and by the wall clock, because the
// monotonic clock stands still while a machine is suspended.
//
// The Lease also shows that etcd was restored from a backup. If the restore did not raise the
// revisions, a watch that continues at an earlier revision receives no event until the revisions
// have caught up, and the caches are wrong until then. But the Lease, which the leader renews and a
// standby reads every two seconds, then has an older renewal. The process ends, and the next one
// reads everything. After a failed renewal, the Guard also refuses writes until one succeeds, so no
// write is sent between an outage and that look at the Lease. A backup that is younger than the last
// renewal is not noticed.
//
// The Lease has Package Operator's name, so that both engines never lead together. The client of the
// Lease must not be guarded, because it could then never acquire the Lease.
package leadership
