package tracing

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objectsets"
)

// Follower exports what revisions record, while this process leads.
type Follower struct {
	*Tracer
	// Cache has the informers of the controllers.
	Cache cache.Cache
	Now   func() time.Time
}

// Start follows the revisions of both scopes until ctx ends.
func (f *Follower) Start(ctx context.Context) error {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		informer, err := f.Cache.GetInformer(ctx, scope.NewObjectSet().(client.Object), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("follow the revisions: %w", err)
		}
		registration, err := informer.AddEventHandler(f.handler(ctx))
		if err != nil {
			return fmt.Errorf("follow the revisions: %w", err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
	}
	<-ctx.Done()
	return nil
}

// handler takes the events of an informer. A panic over an object, which others may have written, costs its spans.
func (f *Follower) handler(ctx context.Context) toolscache.ResourceEventHandler {
	guard := func(handle func()) {
		_ = panics.Guard(ctx, "tracing a rollout", func() error {
			handle()
			return nil
		})
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			guard(func() {
				if set, is := obj.(corev1alpha1.GenericObjectSet); is {
					f.added(set, initial)
				}
			})
		},
		UpdateFunc: func(old, obj any) {
			guard(func() {
				before, _ := old.(corev1alpha1.GenericObjectSet)
				if set, is := obj.(corev1alpha1.GenericObjectSet); is && before.GetResourceVersion() != set.GetResourceVersion() {
					f.changed(ctx, before, set)
				}
			})
		},
		DeleteFunc: func(obj any) {
			guard(func() {
				if unknown, is := obj.(toolscache.DeletedFinalStateUnknown); is {
					obj = unknown.Obj
				}
				if set, is := obj.(corev1alpha1.GenericObjectSet); is {
					f.deleted(ctx, set)
				}
			})
		},
	}
}

// added exports what a revision records that is new, or that the leader before may not have exported.
func (f *Follower) added(set corev1alpha1.GenericObjectSet, initial bool) {
	if now := f.Now(); !initial || recent(set, now) {
		f.export(set, ended(nil, set), now)
	}
}

// changed exports what has ended since. A revision that controls nothing any more ends the hand-over to the one that has replaced it.
func (f *Follower) changed(ctx context.Context, before, set corev1alpha1.GenericObjectSet) {
	now := f.Now()
	if objectsets.Owns(set) {
		f.export(set, ended(before, set), now)
		return
	}
	if !objectsets.Owns(before) {
		return
	}
	f.export(before, ended(before, set), now)
	if successor := f.successor(ctx, set); successor != nil {
		f.export(successor, []span{handOver(successor, set, now)}, now)
	}
}

// deleted exports the teardown of a revision that was more than history.
func (f *Follower) deleted(ctx context.Context, set corev1alpha1.GenericObjectSet) {
	if !objectsets.Owns(set) || objectsets.Unwritten(set) {
		return
	}
	now := f.Now()
	since := now
	for _, at := range []*metav1.Time{set.GetDeletionTimestamp(), f.deletionOf(ctx, set)} {
		if at != nil && at.Time.Before(since) {
			since = at.Time
		}
	}
	f.export(set, tornDown(set, since, now), now)
}

// deletionOf returns since when the deployment of a revision is being deleted, as far as the caches know.
func (f *Follower) deletionOf(ctx context.Context, set corev1alpha1.GenericObjectSet) *metav1.Time {
	owner, uid := objectsets.OwnerOf(set), objectsets.DeploymentOf(set)
	if uid == "" {
		return nil
	}
	deployment := corev1alpha1.ScopeOf(set.GetNamespace()).NewObjectDeployment()
	err := f.Cache.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, deployment.(client.Object))
	if err != nil || deployment.GetUID() != uid {
		return nil
	}
	return deployment.GetDeletionTimestamp()
}

// successor returns the latest revision after another one, of the same deployment, that has succeeded and is no history; nil where
// there is none, such as while the one that has taken over is rolled out.
func (f *Follower) successor(ctx context.Context, set corev1alpha1.GenericObjectSet) (latest corev1alpha1.GenericObjectSet) {
	deployment := objectsets.DeploymentOf(set)
	if deployment == "" {
		return nil
	}
	list := corev1alpha1.ScopeOf(set.GetNamespace()).NewObjectSetList()
	labels := client.MatchingLabels{corev1alpha1.ObjectDeploymentLabel: objectsets.OwnerOf(set).Name}
	if err := f.Cache.List(ctx, list.(client.ObjectList), client.InNamespace(set.GetNamespace()), labels, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	for _, other := range list.GenericObjectSets() {
		if objectsets.DeploymentOf(other) != deployment || other.ObjectSetSpec().Revision <= set.ObjectSetSpec().Revision || !objectsets.Owns(other) || !of(other).complete {
			continue
		}
		if latest == nil || latest.ObjectSetSpec().Revision < other.ObjectSetSpec().Revision {
			latest = other
		}
	}
	return latest
}
