package limits

import "time"

// Limits of the controller of repositories.
const (
	RepositoryInterval     = 10 * time.Minute // between fetches where a repository states none
	RepositoryIntervalMin  = 30 * time.Second
	RepositoryJitter       = 0.1              // of the interval, at most, is added to it
	RepositoryPause        = 5 * time.Second  // between fetches of a repository whose source changes again and again
	RepositoryBackoffMin   = 10 * time.Second // after a fetch that failed; at most the interval
	RepositoryWorkers      = 4                // catalogues that are reconciled at a time
	FetchesShort           = 8                // fetches at a time, of which each has its files in memory
	FetchesPerHost         = 4                // fetches of one host at a time, each of another namespace
	FetchShort             = 5 * time.Second  // what takes longer leaves room for the others: one at a time up to FetchMedium, and one beyond it
	FetchMedium            = 30 * time.Second
	AvailableInFlight      = 8                // packages of a catalogue that are written at a time
	AvailableRepair        = 10 * time.Second // between repairs of what others changed in a catalogue
	RepositoryStatusDelay  = time.Second      // until it is reported that a fetch goes on; most are over by then
	RepositoryStatusBytes  = 512              // of one problem in the status of a repository
	RepositoryStatusNumber = 10               // of problems and conflicts in it
	RepositoryValidator    = 4096             // bytes of a validator that the status takes
)
