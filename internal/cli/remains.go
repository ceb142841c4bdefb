package cli

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/progress"
)

// remains adds what blocking objects of a teardown wait for, since the engine watches its own
// objects only.
type remains struct {
	cluster  *cluster.Cluster
	client   client.Client
	blocking []corev1alpha1.BlockingObject
	// since is when blocking was first seen, queried when messages were last read.
	since, queried time.Time
	// messages by the index in blocking.
	messages []string
}

// refine ignores errors: the deletion goes on.
func (r *remains) refine(ctx context.Context, snap progress.Snapshot) progress.Snapshot {
	blocking, now := snap.Package.PackageStatus().Blocking, time.Now()
	if !slices.Equal(blocking, r.blocking) {
		r.blocking, r.since, r.queried, r.messages = slices.Clone(blocking), now, time.Time{}, nil
	}
	if len(blocking) == 0 || now.Sub(r.since) < refineInterval {
		return snap // most objects are gone soon
	}
	if now.Sub(r.queried) >= refineInterval {
		r.queried = now
		r.query(ctx)
	}
	if len(r.messages) != len(blocking) {
		return snap
	}
	pkg := snap.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
	for i, message := range r.messages {
		if message != "" {
			// In front, because long lines are cut.
			b := &pkg.PackageStatus().Blocking[i]
			b.Message = message + "; " + b.Message
		}
	}
	snap.Package = pkg
	return snap
}

func (r *remains) query(ctx context.Context) {
	if r.client == nil {
		var err error
		if r.client, err = r.cluster.AnyKind(); err != nil {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, refineInterval)
	defer cancel()
	if messages, err := diagnose.Remains(ctx, r.client, r.blocking); err == nil {
		r.messages = messages
	}
}
