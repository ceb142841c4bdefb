package manager

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/tracing"
)

// trace exports what revisions record, where the environment names a collector, while this process leads. An agent rolls out single
// phases, whose times its ObjectSets have, and does not look at the environment. Variables that it cannot use are logged and cost the
// traces alone: platforms put them into all pods. The result is called at the end, without the Lease.
func trace(ctx context.Context, mgr ctrl.Manager, c *Config) (end func(), err error) {
	if c.agent() {
		return func() {}, nil
	}
	log := mgr.GetLogger().WithName("tracing")
	collector, err := tracing.Endpoint()
	if collector == "" && err == nil {
		return func() {}, nil
	}
	var tracer *tracing.Tracer
	if err == nil {
		tracer, err = tracing.New(ctx, log)
	}
	if err != nil {
		log.Info("exporting no traces", "reason", conditions.Message(err.Error()))
		return func() {}, nil
	}
	log.Info("exporting traces", "collector", collector)
	return tracer.Close, mgr.Add(&tracing.Follower{Tracer: tracer, Cache: mgr.GetCache(), Now: time.Now})
}
