package manager

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is how much garbage there may be for each hundred bytes that are live,
	// as long as all memory stays below its limit. The limit counts gaps too: what is
	// live lies between the garbage, and memory can be given back only where nothing
	// is. So a heap stays as large as it was during the work, and has to be kept from
	// growing.
	gcPercent = 200
	// limitLeast is the limit of a small installation, and limitUsual the one up to
	// which all memory may be limitTimes what is live.
	limitLeast = 40 << 20
	limitUsual = 80 << 20
	limitTimes = 3
	// spareBytes, and one byte for each spareShare that are live, may be garbage, gaps
	// and what the runtime needs itself in any case: with a quarter or a third, an
	// upgrade of a thousand packages with history took two or three times as much
	// processor time.
	spareBytes = 16 << 20
	spareShare = 2
	// limitStep is in what steps the limit moves: each move stops the process for a
	// moment.
	limitStep = 1 << 20
	// adjustPeriod is how often that is looked at: what is live may double in a second.
	adjustPeriod = 250 * time.Millisecond
	// idlePeriod is how long nothing may be allocated for memory to be given back.
	idlePeriod = 10 * time.Second
	// idleBytes is how much allocation counts as nothing: the Lease's renewals
	// and probes.
	idleBytes = 4 << 20
)

// limitGarbage sets GOGC where the environment does not. Nothing is recorded for
// profiles of memory that cannot be requested: the records take two megabytes.
func limitGarbage(profiled bool) {
	if !profiled {
		runtime.MemProfileRate = 0
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// limitMemory bounds all memory by what is live, where the environment does not say
// how garbage is collected. GOMEMLIMIT is not exceeded.
func limitMemory(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	ticker := time.NewTicker(adjustPeriod)
	defer ticker.Stop()
	most := debug.SetMemoryLimit(-1) // of the environment
	defer debug.SetMemoryLimit(most)
	for limit := most; ; {
		if next := limitFor(int64(read("/gc/heap/live:bytes")), most); next != limit {
			debug.SetMemoryLimit(next)
			limit = next
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// limitFor returns how much memory there may be for so many live bytes.
func limitFor(live, most int64) int64 {
	limit := max(limitLeast, min(limitUsual, limitTimes*live), live+live/spareShare+spareBytes)
	return min(most, limit/limitStep*limitStep)
}

// returnMemory gives garbage back to the system when work is over, and what idle lets
// go: Go itself keeps the heap at the size that it had during the work, and collects
// every two minutes only.
func returnMemory(ctx context.Context, idle func()) error {
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
			idle()
			runtime.GC() // what is pooled is garbage after a second one only
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
