package manager

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"lockstep.run/lockstep/internal/tracing"
)

// trace exports what revisions record, where the environment names a collector, while this process leads. An agent rolls out single
// phases, whose times its ObjectSets have. The result is called at the end, without the Lease.
func trace(ctx context.Context, mgr ctrl.Manager, c *Config) (end func(), err error) {
	if c.Collector == "" || c.agent() {
		return func() {}, nil
	}
	log := mgr.GetLogger().WithName("tracing")
	tracer, err := tracing.New(ctx, log)
	if err != nil {
		return nil, err
	}
	log.Info("exporting traces", "collector", c.Collector)
	return tracer.Close, mgr.Add(&tracing.Follower{Tracer: tracer, Cache: mgr.GetCache(), Now: time.Now})
}
