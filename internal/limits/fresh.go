package limits

import "time"

// FreshRemembered is how long the answer to a write of one of our own kinds is
// remembered while the cache does not show it. A watch is milliseconds behind,
// after a broken connection some seconds.
const FreshRemembered = time.Minute

// FreshShown is for how long the answer to a write is remembered after the cache
// has shown it: a reader of the cache a moment before goes on to ask for what is
// newer.
const FreshShown = 2 * time.Second

// Limits of texts that are kept once for all objects that have them: the names of
// conditions, reasons, kinds, namespaces. Beyond SharedTexts they are forgotten, and
// collected anew; it takes 200 KiB at most.
const (
	SharedTexts     = 2048
	SharedTextBytes = 64
)

// OldLists is for how long a list is asked for again that is older than what a watch
// has delivered. An API server that is behind catches up in less; one that was restored
// from a backup stays there.
const OldLists = 10 * time.Second
