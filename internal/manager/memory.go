package manager

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent bounds garbage to as much as is live. With half of it, a quarter of
	// the processor time of an install is spent on collecting it; what is left
	// after the work is given back anyway.
	gcPercent = 100
	// idlePeriod is how long nothing may be allocated for memory to be given back.
	idlePeriod = 10 * time.Second
	// idleBytes is how much allocation counts as nothing: the Lease's renewals
	// and probes.
	idleBytes = 4 << 20
)

// limitGarbage sets GOGC where the environment does not.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// returnMemory gives garbage back to the system when work is over: Go itself
// keeps the heap at the size that it had during the work, and collects every two
// minutes only.
func returnMemory(ctx context.Context) error {
	ticker := time.NewTicker(idlePeriod)
	defer ticker.Stop()
	last, returned := allocated(), true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := allocated()
		switch {
		case now-last > idleBytes:
			returned = false
		case !returned:
			debug.FreeOSMemory()
			returned = true
		}
		last = now
	}
}

// allocated returns how much was allocated since the start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
