package limits

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	for pace, want := range map[Pace]time.Duration{0: time.Minute, 1: time.Minute, 0.1: 6 * time.Second} {
		if got := pace.Of(time.Minute); got != want {
			t.Errorf("%v: %v, want %v", pace, got, want)
		}
	}
}
