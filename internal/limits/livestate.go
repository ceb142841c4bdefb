package limits

import (
	"time"
)

// Pauses of watches.
const (
	WatchBackoffMin = 10 * time.Millisecond // after the first failed list or watch: a new CRD answers 404 for a few milliseconds
	WatchBackoffMax = 10 * time.Second      // while an API stays unreachable
	Establishing    = 2 * time.Second       // during which 404 is an expected answer for the API of a CRD: it is established a little earlier than it is served
)

// Limits of live objects.
const (
	RecordBytes      = 256 << 10       // the fields of one object that probes read; a large status has a tenth
	RecordSmallBytes = 4 << 10         // internal: fields of one object that are not counted as memory of the namespace
	RecordRetry      = 5 * time.Minute // internal: time until an object is read again that did not fit into memory
	EventNesting     = 10_000          // internal: levels of an event of a watch, as in encoding/json; its readers are recursive
)

// Limits of requests to the API server.
const (
	ResponseBytes  = 16 << 20                           // an object or page in a response; larger pages are requested in parts
	LargePageBytes = 1 << 20                            // internal: size from which a page is large; a page of 500 usual objects has about as much
	LargePages     = 2                                  // internal: large pages that are read at a time
	WriteTimeout   = 60 * time.Second                   // one write or read of an object, including webhooks, as in API servers
	DialTimeout    = LeaseDuration - LeaseRenewDeadline // internal: a connection for writes
)

// Limits of other clusters as targets.
const (
	KubeconfigBytes      = 64 << 10         // a kubeconfig with one context and certificates
	TargetProbeTimeout   = 10 * time.Second // identification of a target
	ClusterUIDBytes      = 64               // internal: the UID of a target; API servers generate 36 bytes
	TargetWritesInFlight = 8                // internal: concurrent writes to one target, which can be smaller than the manager's cluster
	TargetRequestTimeout = 30 * time.Second // one request to a target; its webhooks have 10 s by default
	TargetResponseBytes  = 8 << 20          // one answer of a target; larger pages are requested in parts
	TargetResponseValues = 400_000          // JSON values in one answer of a target, at up to 100 bytes each
	TargetObjectBytes    = 4 << 20          // one object or event of a target
	TargetObjectValues   = 200_000          // JSON values of one object of a target
	TargetDocumentBytes  = 16 << 20         // a schema document of a target
	TargetDocumentValues = 2_000_000        // JSON values of a schema document
	TargetNameBytes      = 253              // internal: names and versions in definitions of a target
	TargetPages          = 1000             // pages of one list of a target
	TargetVersionBytes   = 128              // internal: the version of a target, which templates see
)

// Leader election has Package Operator's times, because both share one Lease.
const (
	LeaseDuration      = 15 * time.Second // that others wait for a silent leader
	LeaseRenewDeadline = 10 * time.Second // of sending writes since the last renewal; the rest is for writes in flight
	LeaseRetry         = 2 * time.Second  // between renewals, and between attempts of others
)

// Ages of what caches return.
const (
	FreshRemembered = time.Minute      // of the response to a write while the cache lacks it
	FreshShown      = 2 * time.Second  // of the same after that, for readers of the cache a moment before
	OldLists        = 10 * time.Second // of requesting a list again that is older than the watch; after a restore it stays so
)
