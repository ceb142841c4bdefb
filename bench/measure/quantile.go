package measure

import (
	"slices"
	"time"
)

// Quantiles are quantiles of durations, in milliseconds.
type Quantiles struct {
	P50, P90, P99, Max float64
}

// quantilesOf returns the quantiles. There has to be at least one time.
func quantilesOf(times []time.Duration) Quantiles {
	sorted := slices.Sorted(slices.Values(times))
	at := func(q float64) float64 {
		i := int(q * float64(len(sorted)))
		return sorted[min(i, len(sorted)-1)].Seconds() * 1000
	}
	return Quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}
}

// median returns the median. There has to be at least one time.
func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
