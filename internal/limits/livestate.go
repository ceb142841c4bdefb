package limits

import "time"

// Limits of watching.
const (
	// WatchGrace is how long the watch of a kind goes on after the last user of
	// the kind left: a package that is deleted and installed again, or a
	// revision that moves an object, costs no second list.
	WatchGrace = 30 * time.Second
	// WatchBackoffMin is the first delay after a failed list or watch. An API
	// whose CRD was just established answers 404 for a few milliseconds.
	WatchBackoffMin = 10 * time.Millisecond
	// WatchBackoffMax bounds the delay while an API stays unreachable.
	WatchBackoffMax = 30 * time.Second
	// ReconnectMax is the longest pause between attempts to connect a watch again
	// while there is no answer at all: some dozen connections a second at most.
	ReconnectMax = 2 * time.Second
	// RolesRead is how long an API server that came back may refuse what it allows
	// once it has read the roles, which takes it well below a second.
	RolesRead = 10 * time.Second
	// StartGrace is how long a starting manager asks again what is served, before it
	// gives up and is started again.
	StartGrace = 15 * time.Second
	// FirstListGrace is how long the first list of a kind may fail before that counts
	// as more than a hiccup: about ten attempts.
	FirstListGrace = 5 * time.Second
	// WatchPage is how many objects one page of a LIST holds; only API servers
	// without streaming lists are asked for pages.
	WatchPage = 500
	// DiscoveryDebounce joins the changes that one installation makes to
	// APIServices into one refresh of discovery (two requests).
	DiscoveryDebounce = 200 * time.Millisecond
	// DiscoveryAttempts is how often discovery is read again while it lacks a
	// group version whose APIService says that it is available.
	DiscoveryAttempts = 8
	// ConfirmParallel is how many kinds are listed at a time to prove that
	// records of several kinds are current.
	ConfirmParallel = 4
	// StopWait bounds how long stopping waits for watches to end.
	StopWait = 2 * time.Second
)

// Limits of writing objects.
const (
	// ResponseBytes bounds one object or page in an API server's response.
	// Objects are stored in at most 1.5 MiB; managedFields and converted
	// versions can be a multiple of it.
	ResponseBytes = 16 << 20
	// WriteTimeout bounds one write or read of one object, webhooks (30 s at
	// most) included. API servers end a request after the same time.
	WriteTimeout = 60 * time.Second
	// DialTimeout bounds how long one connection for writes takes to be made: a write
	// is allowed before that, and this is the room that is left for one on its way.
	DialTimeout = LeaseDuration - LeaseRenewDeadline
)

// Leader election: Package Operator's times, as both engines
// share one Lease.
const (
	// LeaseDuration is how long others wait for a leader that is silent.
	LeaseDuration = 15 * time.Second
	// LeaseRenewDeadline is how old the last renewal may be for a write to be
	// sent; the rest of LeaseDuration is room for a write on its way.
	LeaseRenewDeadline = 10 * time.Second
	// LeaseRetry is the time between renewals, and between attempts of others.
	LeaseRetry = 2 * time.Second
)
