package limits

import "time"

// Pauses of the controller of repositories.
const (
	RepositoryIntervalMin = 30 * time.Second
	RepositoryPause       = 5 * time.Second // between fetches of a repository whose source changes again and again
	RepositoryStatusDelay = time.Second     // until it is reported that a fetch goes on; most are over by then
)
