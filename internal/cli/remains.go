package cli

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/diagnose"
)

// remains adds to what blocks a teardown what is left behind it: the engine watches
// its own objects alone.
type remains struct {
	cluster *cluster.Cluster
	client  client.Client
	// blocking is what was asked about, since when it blocks, when it was asked about
	// last, and what was said.
	blocking     []corev1alpha1.BlockingObject
	since, asked time.Time
	said         []string
}

func newRemains(cl *cluster.Cluster) *remains { return &remains{cluster: cl} }

// refine is for following. What cannot be found out is left out: the deletion goes on.
func (r *remains) refine(ctx context.Context, snap progress.Snapshot) progress.Snapshot {
	blocking, now := snap.Package.PackageStatus().Blocking, time.Now()
	if !slices.Equal(blocking, r.blocking) {
		r.blocking, r.since, r.asked, r.said = slices.Clone(blocking), now, time.Time{}, nil
	}
	if len(blocking) == 0 || now.Sub(r.since) < refineInterval {
		return snap // most of it passes
	}
	if now.Sub(r.asked) >= refineInterval {
		r.asked = now
		r.ask(ctx)
	}
	if len(r.said) != len(blocking) {
		return snap
	}
	pkg := snap.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
	for i, said := range r.said {
		if said != "" {
			// In front: a line has an end, and this is what someone has to look after.
			b := &pkg.PackageStatus().Blocking[i]
			b.Message = said + "; " + b.Message
		}
	}
	snap.Package = pkg
	return snap
}

func (r *remains) ask(ctx context.Context) {
	if r.client == nil {
		var err error
		if r.client, err = r.cluster.AnyKind(); err != nil {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, refineInterval)
	defer cancel()
	if said, err := diagnose.Remains(ctx, r.client, r.blocking); err == nil {
		r.said = said
	}
}
