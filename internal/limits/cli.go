package limits

import "time"

// Limits of --query on the command line. The expression is its user's own, so
// they are wide: they end what would never end or exhaust the machine.
const (
	// QueryBytes is the length of a jq expression.
	QueryBytes = 64 << 10
	// QueryTime is how long one evaluation takes.
	QueryTime = 20 * time.Second
	// QueryHeapBytes is by how much the memory of the process may grow meanwhile.
	QueryHeapBytes = 512 << 20
	// QueryOutputBytes is the size of all results as JSON.
	QueryOutputBytes = 64 << 20
)
