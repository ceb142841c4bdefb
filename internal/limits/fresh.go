package limits

import "time"

// FreshRemembered is how long the response to a write is kept while the cache does not have
// it.
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
