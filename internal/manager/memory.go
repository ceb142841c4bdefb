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
	// the processor time of an install is spent on collecting it.
	gcPercent = 100
	// gcPercentLeast is how far garbage is bounded more where more is live, so that
	// there is no more of it than garbageBytes: what is live lies between the garbage,
	// and memory can be given back only where nothing is. A heap that was twice as
	// large as what is live stays so.
	gcPercentLeast = 25
	garbageBytes   = 16 << 20
	// adjustPeriod is how often that is looked at.
	adjustPeriod = time.Second
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

// adjustGarbage bounds garbage by what is live, where the environment does not.
func adjustGarbage(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	ticker := time.NewTicker(adjustPeriod)
	defer ticker.Stop()
	percent := gcPercent
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// Each change stops the process for a moment: small ones are left out.
		if next := percentFor(read("/gc/heap/live:bytes")); next < percent*9/10 || next > percent*11/10 {
			debug.SetGCPercent(next)
			percent = next
		}
	}
}

// percentFor returns how much garbage there may be beside so many live bytes.
func percentFor(live uint64) int {
	if live == 0 {
		return gcPercent
	}
	return int(min(gcPercent, max(gcPercentLeast, garbageBytes*100/live)))
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
func allocated() uint64 { return read("/gc/heap/allocs:bytes") }

// read returns a number of the Go runtime, 0 where it has none of that name.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
