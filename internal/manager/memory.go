package manager

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"lockstep.run/lockstep/internal/limits"
)

const (
	// gcPercent is GOGC below the memory limit. The limit includes gaps between live memory: pages
	// with a live object are not returned, so a heap keeps its size from the time of the work.
	gcPercent = 200
	// limitLeast is the lowest limit. Up to limitUsual it is limitTimes the live heap.
	limitLeast = 40 << 20
	limitUsual = 80 << 20
	limitTimes = 3
	// spareBytes, and one byte for each spareShare live ones, are always left for garbage, gaps and
	// the runtime. With a quarter or a third, an upgrade of a thousand packages with history took
	// two or three times the CPU time.
	spareBytes = 16 << 20
	spareShare = 2
	// limitStep rounds the limit: each change stops the process for a moment.
	limitStep = 1 << 20
	// adjustPeriod is the period between changes, because the live heap can double in a second.
	adjustPeriod = 250 * time.Millisecond
	// idlePeriod is the time without allocations after which memory is given back.
	idlePeriod = 10 * time.Second
	// startQuiet is the same period for a process that starts to lead, for at most startMost. Until
	// then garbage is collected only once one part in startShare of the memory is full, because the objects that it
	// reads stay, and collecting garbage took a third of the CPU time of a restart.
	startQuiet = 500 * time.Millisecond
	startMost  = 2 * time.Minute
	startShare = 2
	// idleBytes is the amount of allocation of an idle process, for renewals of the Lease and
	// probes.
	idleBytes = 4 << 20
)

// limitGarbage sets GOGC if the environment does not. If profiles are not served, it turns off
// memory profiling, which takes 2 MB.
func limitGarbage(profiled bool) {
	if !profiled {
		runtime.MemProfileRate = 0
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// keepMemorySmall returns a part of the manager that keeps the memory of the process in proportion
// to its live heap, unless GOGC is set, and within most, which is GOMEMLIMIT. When work is over, it
// returns garbage, and memory that idle releases, to the system: Go itself collects every two
// minutes, and keeps the heap as large as during the work.
func keepMemorySmall(most int64, idle func()) ctrlmanager.RunnableFunc {
	return func(ctx context.Context) error {
		limit, last, returned, began := most, allocated(), true, time.Now()
		period, at := startQuiet, began
		defer debug.SetMemoryLimit(most)

		adjusts := os.Getenv("GOGC") == ""
		collects := !adjusts
		if adjusts {
			debug.SetGCPercent(-1)
			limit = min(most, limits.MemoryDefault) / startShare
			debug.SetMemoryLimit(limit)
		}

		wait.UntilWithContext(ctx, func(context.Context) {
			live := int64(read("/gc/heap/live:bytes")) //nolint:gosec // less than the memory of a machine
			if !collects && (period == idlePeriod || live > limit/2) {
				collects, limit = true, most
				debug.SetGCPercent(gcPercent)
				debug.SetMemoryLimit(limit)
			}

			if next := limitFor(live, most); adjusts && period == idlePeriod && next != limit {
				debug.SetMemoryLimit(next)
				limit = next
			}

			if time.Since(at) < period {
				return
			}
			now := allocated()
			switch {
			case now-last > idleBytes:
				returned = false
			// The process was busy in an earlier period and is idle in this one.
			case !returned:
				idle()
				runtime.GC() // pooled objects are garbage after a second one only
				debug.FreeOSMemory()
				returned, period = true, idlePeriod
			}
			if last, at = now, time.Now(); at.Sub(began) > startMost {
				period = idlePeriod
			}
		}, adjustPeriod)
		return nil
	}
}

// limitFor returns the limit for a live heap.
func limitFor(live, most int64) int64 {
	limit := max(limitLeast, min(limitUsual, limitTimes*live), live+live/spareShare+spareBytes)
	return min(most, limit/limitStep*limitStep)
}

// allocated returns the bytes allocated since the start.
func allocated() uint64 { return read("/gc/heap/allocs:bytes") }

// read returns a metric of the Go runtime, 0 if it does not exist.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
