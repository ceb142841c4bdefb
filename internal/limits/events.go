package limits

import "time"

// Limits of events.
const (
	// EventsQueued is how many events wait to be sent; a thousand take 2 MiB.
	EventsQueued = 1000
	// EventsInFlight bounds concurrent requests for events: they come after all else.
	EventsInFlight = 4
	// EventPatience is how long an event waits for other work, checked every EventYield.
	EventPatience = 5 * time.Second
	EventYield    = 50 * time.Millisecond
	// EventAttempts and EventRetry: an event without response is sent again for two
	// minutes.
	EventAttempts = 12
	EventRetry    = 10 * time.Second
)
