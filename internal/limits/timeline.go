package limits

// Limits of the timeline of a revision, with which it has at most 16 KiB of the 32 KiB of a status.
const (
	TimelinePhases = 32 // the first ones: few packages have more
)
