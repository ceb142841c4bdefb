package limits

import (
	"time"
)

// Pauses of watches.
const (
	WatchBackoffMin = 10 * time.Millisecond // after the first failed list or watch: a new CRD answers 404 for a few milliseconds
	WatchBackoffMax = 10 * time.Second      // while an API stays unreachable
	Establishing    = 2 * time.Second       // for which 404 is an expected answer for the API of a CRD: it is established a little earlier than it is served
)

// Limits of the records of live objects.
const (
	RecordBytes      = 256 << 10       // of what probes read of one object: a large status has a tenth
	RecordSmallBytes = 4 << 10         // of the same that is not counted as memory of the namespace: its packages are counted with some room
	RecordRetry      = 5 * time.Minute // after which an object is read again for which there was no room
)

// Limits of writing objects.
const (
	ResponseBytes  = 16 << 20                           // of an object or page in a response: 1.5 MiB as stored, and managedFields; a page that is larger is asked for in smaller ones
	LargePageBytes = 1 << 20                            // from which a page is large: a page of 500 usual objects has about as much
	LargePages     = 2                                  // that are read at a time
	WriteTimeout   = 60 * time.Second                   // of one write or read of an object with webhooks (30 s), as in API servers
	DialTimeout    = LeaseDuration - LeaseRenewDeadline // of a connection for writes: that of a write in flight
)

// Limits of other clusters as targets.
const (
	KubeconfigBytes      = 64 << 10         // of a kubeconfig: one context, with certificates
	TargetProbeTimeout   = 10 * time.Second // for a cluster to answer who it is
	ClusterUIDBytes      = 64               // of what a target calls itself, and an owner records; API servers make 36
	TargetWritesInFlight = 8                // concurrent writes to one target, which may be smaller than the cluster of the manager
	TargetRequestTimeout = 30 * time.Second // of one request to a target: its webhooks have 10 s by default
	TargetResponseBytes  = 8 << 20          // of one answer of a target, which is not trusted: a page of objects, or what it serves; a page that is larger is asked for in smaller ones
	TargetResponseValues = 400_000          // JSON values of the same, of up to 100 bytes each when they are decoded, as are a hundred pages of text
	TargetObjectBytes    = 4 << 20          // of one object or event of a target: 1.5 MiB as stored, and managedFields
	TargetObjectValues   = 200_000          // JSON values of the same: one in 20 bytes, as in managedFields
	TargetDocumentBytes  = 16 << 20         // of a document of schemas of a target, which is kept as text
	TargetDocumentValues = 2_000_000        // JSON values of the same: one in 8 bytes
	TargetNameBytes      = 253              // of names and versions that definitions of a target have
	TargetPages          = 1000             // of one list of a target: half a million small objects, or five thousand of the largest
	TargetVersionBytes   = 128              // of the version of a target, which templates see
)

// Leader election has Package Operator's times, as both share one Lease.
const (
	LeaseDuration      = 15 * time.Second // for which others wait for a silent leader
	LeaseRenewDeadline = 10 * time.Second // since the last renewal in which writes are sent; the rest is for writes in flight
	LeaseRetry         = 2 * time.Second  // between renewals, and between attempts of others
)

// Ages of what caches return.
const (
	FreshRemembered = time.Minute      // of the response to a write while the cache lacks it
	FreshShown      = 2 * time.Second  // of the same after that, for readers of the cache a moment before
	OldLists        = 10 * time.Second // in which a list older than the watch is requested again; after a restore it stays so
)
