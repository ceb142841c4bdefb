package limits

// Limits of the timeline of a revision. With it, a revision uses at most 16 KiB of the 32 KiB of a
// status.
const (
	TimelinePhases = 32 // phases in the timeline of a revision
)
