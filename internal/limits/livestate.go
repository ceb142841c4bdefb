package limits

import (
	"time"
)

// Limits of watching.
const (
	// WatchGrace is how long a watch continues without users, so that a package that is
	// deleted and installed again needs no second list.
	WatchGrace = 30 * time.Second
	// WatchBackoffMin is the first delay after a failed list or watch: a new CRD answers
	// 404 for a few milliseconds.
	WatchBackoffMin = 10 * time.Millisecond
	// WatchBackoffMax bounds the delay while an API stays unreachable.
	WatchBackoffMax = 10 * time.Second
	// ReconnectMax is the longest delay between attempts to reach the API server at start.
	ReconnectMax = 2 * time.Second
	// StartGrace is how long discovery is retried at start.
	StartGrace = 15 * time.Second
	// FirstListGrace is how long errors of the first list of a kind count as transient.
	FirstListGrace = 5 * time.Second
	// DiscoveryDebounce coalesces changes of APIServices into one refresh of discovery.
	DiscoveryDebounce = 200 * time.Millisecond
	// DiscoveryAttempts bounds reads of discovery that lack the group of an available APIService.
	DiscoveryAttempts = 8
	// ConfirmParallel is how many kinds are listed at a time to confirm records.
	ConfirmParallel = 4
	// StopWait bounds how long stopping waits for watches to end.
	StopWait = 2 * time.Second
)

// Limits of writing objects.
const (
	// ResponseBytes bounds an object or page in a response. Objects are stored in at most
	// 1.5 MiB; managedFields and converted versions can be a multiple of it.
	ResponseBytes = 16 << 20
	// WriteTimeout bounds one write or read of an object, webhooks (30 s) included, as API
	// servers do.
	WriteTimeout = 60 * time.Second
	// DialTimeout bounds making a connection for writes, whose room is that of a write on its way.
	DialTimeout = LeaseDuration - LeaseRenewDeadline
)

// Leader election has Package Operator's times, as both share one Lease.
const (
	// LeaseDuration is how long others wait for a leader that is silent.
	LeaseDuration = 15 * time.Second
	// LeaseRenewDeadline is the age of the last renewal up to which writes are sent; the
	// rest of LeaseDuration is for writes on their way.
	LeaseRenewDeadline = 10 * time.Second
	// LeaseRetry is the time between renewals, and between attempts of others.
	LeaseRetry = 2 * time.Second
)

// FreshRemembered is how long the response to a write is kept while the cache does not have it.
const FreshRemembered = time.Minute

// FreshShown is how long it is kept after that, for readers of the cache a moment before.
const FreshShown = 2 * time.Second

// Limits of interned texts: names of conditions, reasons, kinds, namespaces. Beyond
// SharedTexts they are discarded; 200 KiB at most.
const (
	SharedTexts     = 2048
	SharedTextBytes = 64
)

// OldLists is how long a list older than the watch is requested again. An API server that
// is behind catches up in less; one restored from a backup does not.
const OldLists = 10 * time.Second
