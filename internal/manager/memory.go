package manager

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"lockstep.run/lockstep/internal/limits"
)

const (
	// startQuiet is a time without allocations that ends the start of a process, after at most
	// startMost. Until then garbage is collected only once one part in startShare of the memory is
	// full, because the objects that it reads stay, and collecting garbage took a third of the CPU
	// time of a restart.
	startQuiet = 500 * time.Millisecond
	startMost  = 2 * time.Minute
	startShare = 2
	// idlePeriod is the time without allocations after which memory is given back.
	idlePeriod = 10 * time.Second
	// idleBytes is the amount of allocation of an idle process, for renewals of the Lease and
	// probes.
	idleBytes = 4 << 20
)

// keepMemorySmall returns a part of the manager that collects little garbage during the start. When
// work is over, it returns garbage, and memory that idle releases, to the system: Go itself collects
// every two minutes, and keeps the heap as large as during the work. most is GOMEMLIMIT.
func keepMemorySmall(most int64, idle func()) ctrlmanager.RunnableFunc {
	return func(ctx context.Context) error {
		start(ctx, most)

		last, busy := allocated(), true
		wait.UntilWithContext(ctx, func(context.Context) {
			now, wasBusy := allocated(), busy
			busy = now-last > idleBytes
			last = now
			if wasBusy && !busy {
				idle()
				runtime.GC() // pooled objects are garbage after a second one only
				debug.FreeOSMemory()
			}
		}, idlePeriod)
		return nil
	}
}

// start delays the collection of garbage until the process has read the cluster, or has filled a
// good part of its memory with live objects.
func start(ctx context.Context, most int64) {
	limit := min(most, limits.MemoryDefault) / startShare
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(most)

	last := allocated()
	ended := func(context.Context) (bool, error) {
		now := allocated()
		quiet := now-last <= idleBytes
		last = now
		return quiet || read("/gc/heap/live:bytes") > uint64(limit/2), nil //nolint:gosec // positive
	}
	_ = wait.PollUntilContextTimeout(ctx, startQuiet, startMost, false, ended) // the time is up, or ctx ends
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
