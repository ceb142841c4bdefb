package limits

import "time"

// Pace relates the pauses of a controller, between fetches and repairs, to the limits. The zero
// value is 1; tests that wait for pauses lower it.
type Pace float64

// Of returns a pause at that pace.
func (p Pace) Of(pause time.Duration) time.Duration {
	if p == 0 {
		return pause
	}
	return time.Duration(float64(p) * float64(pause))
}
