package limits

import (
	"time"
)

// Limits of watching.
const (
	WatchGrace        = 30 * time.Second       // of a watch without users: a package that is installed again needs no second list
	WatchBackoffMin   = 10 * time.Millisecond  // after the first failed list or watch: a new CRD answers 404 for a few milliseconds
	WatchBackoffMax   = 10 * time.Second       // while an API stays unreachable
	ReconnectMax      = 2 * time.Second        // between attempts to reach the API server at start
	StartGrace        = 15 * time.Second       // for which discovery is retried at start
	Establishing      = 2 * time.Second        // for which 404 is an expected answer for the API of a CRD: it is established a little earlier than it is served
	FirstListGrace    = 5 * time.Second        // for which errors of the first list of a kind count as transient
	DiscoveryDebounce = 200 * time.Millisecond // in which changes of APIServices become one refresh of discovery
	DiscoveryAttempts = 8                      // reads of discovery that lack the group of an available APIService
	ConfirmParallel   = 4                      // kinds that are listed at a time to confirm records
	NamedPage         = 50                     // objects in a page of metadata of which some are needed: up to 1.5 MiB each
	StopWait          = 2 * time.Second        // for watches to end
)

// Limits of writing objects.
const (
	ResponseBytes = 16 << 20                           // of an object or page in a response: 1.5 MiB as stored, and managedFields
	WriteTimeout  = 60 * time.Second                   // of one write or read of an object with webhooks (30 s), as in API servers
	DialTimeout   = LeaseDuration - LeaseRenewDeadline // of a connection for writes: that of a write in flight
)

// Limits of other clusters as targets.
const (
	KubeconfigBytes      = 64 << 10         // of a kubeconfig: one context, with certificates
	KubeconfigPoll       = 5 * time.Second  // between looks at the kubeconfig file of an agent: volumes of Secrets change within a minute
	TargetProbeTimeout   = 10 * time.Second // for a cluster to answer who it is
	ClusterUIDBytes      = 64               // of what a target calls itself, and an owner records; API servers make 36
	TargetBackoffMin     = time.Second      // after the first attempt to reach a target failed
	TargetBackoffMax     = 5 * time.Minute  // between attempts to reach a target; a changed Secret is tried at once
	TargetWorkers        = 4                // owners of one target that are reconciled at a time: they wait for it
	TargetWritesInFlight = 8                // concurrent writes to one target, which may be smaller than the cluster of the manager
	TargetQPS            = 100              // requests to one target in a second, watches apart; API servers limit for themselves, too
	TargetBurst          = 200              // requests to one target at once
	TargetRequestTimeout = 30 * time.Second // of one request to a target: its webhooks have 10 s by default
	TargetResponseBytes  = 8 << 20          // of one answer of a target, which is not trusted: a page of objects, or what it serves; a page that is larger is asked for in smaller ones
	TargetResponseValues = 400_000          // JSON values of the same, of up to 100 bytes each when they are decoded, as are a hundred pages of text
	TargetObjectBytes    = 4 << 20          // of one object or event of a target: 1.5 MiB as stored, and managedFields
	TargetObjectValues   = 200_000          // JSON values of the same: one in 20 bytes, as in managedFields
	TargetDocumentBytes  = 16 << 20         // of a document of schemas of a target, which is kept as text
	TargetDocumentValues = 2_000_000        // JSON values of the same: one in 8 bytes
	TargetFreeLine       = 64 << 10         // of a line of a watch that is not counted as memory: as large as many objects
	TargetsAtATime       = 2                // large answers of all targets that are read and decoded at a time, of up to 50 MiB each then; one of a namespace
	TargetTurn           = 10 * time.Second // of one of them: the others wait
	TargetDecodeRate     = 16 << 20         // bytes of JSON that are decoded in a second, at least
	TargetMemory         = 1 << 20          // of a target without objects: connections, and what it serves
	TargetsShare         = 3                // of GOMEMLIMIT is for all targets together: a third
	TargetsMemory        = 133 << 20        // the same without GOMEMLIMIT: that of config/manager
	TargetNameBytes      = 253              // of names and versions that definitions of a target have
	TargetPages          = 1000             // of one list of a target: half a million small objects, or five thousand of the largest
	TargetVersionBytes   = 128              // of the version of a target, which templates see
	TargetErrorBytes     = 512              // of the cause in a message
	TargetSchemaTimeout  = time.Second      // for the schema of one kind of a target that a dependency needs fields of
	TargetGrace          = 30 * time.Second // of a connection without users: a package that is installed again needs no second list
)

// Leader election has Package Operator's times, as both share one Lease.
const (
	LeaseDuration      = 15 * time.Second // for which others wait for a silent leader
	LeaseRenewDeadline = 10 * time.Second // since the last renewal in which writes are sent; the rest is for writes in flight
	LeaseRetry         = 2 * time.Second  // between renewals, and between attempts of others
	StandbyCheckMax    = 30 * time.Second // of one check whether a standby could lead, and between two: CRDs and roles of an upgrade come a moment later
)

// Limits of caches.
const (
	FreshRemembered = time.Minute      // of the response to a write while the cache lacks it
	FreshShown      = 2 * time.Second  // of the same after that, for readers of the cache a moment before
	OldLists        = 10 * time.Second // in which a list older than the watch is requested again; after a restore it stays so
)
