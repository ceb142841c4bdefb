package limits

import "time"

// Limits of events.
const (
	// EventsQueued is how many events wait to be sent; a thousand take 2 MiB.
	EventsQueued = 1000
	// EventsInFlight bounds concurrent requests for events: they come after all else.
	EventsInFlight = 4
	// EventPatience is for how long an event waits while other work is under way, and
	// EventYield how often it looks.
	EventPatience = 5 * time.Second
	EventYield    = 50 * time.Millisecond
	// EventAttempts and EventRetry are how often, and after what time, an event is
	// sent again that got no answer: two minutes in all.
	EventAttempts = 12
	EventRetry    = 10 * time.Second
)
