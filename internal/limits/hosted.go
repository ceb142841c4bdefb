package limits

import "time"

// Limits of the controller of HostedClusterPackages.
const (
	HostedWorkers      = 2               // HostedClusterPackages that are reconciled at a time
	HostedWrites       = 8               // Packages of one that are written at a time
	HostedUpdates      = 100             // Packages that are updated at a time, which status.processing names: some 15 KiB
	HostedPartitions   = 60              // groups that a status counts: some 12 KiB
	HostedNames        = 5               // Packages that a message names
	HostedProblemBytes = 512             // of why one of them cannot be written
	HostedRetryMin     = time.Second     // after a write of a Package that was refused, doubled each time
	HostedRetryMax     = 5 * time.Minute // fields may be released without a trace in the Package's content
)
