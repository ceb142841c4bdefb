package limits

import (
	"testing"
	"time"

	"lockstep.run/lockstep/test/require"
)

func TestPace(t *testing.T) {
	t.Parallel()
	for pace, want := range map[Pace]time.Duration{0: time.Minute, 1: time.Minute, 0.1: 6 * time.Second} {
		require.Equal(t, want, pace.Of(time.Minute), pace)
	}
}
