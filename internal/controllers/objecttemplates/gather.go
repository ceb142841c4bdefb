package objecttemplates

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/objects"
)

const objectTemplateRetry = 5 * time.Second // before it is looked up again whether an unavailable API is served, without a request

// gather reads a template in its latest known state; nil if there is none.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*reconciliation, error) {
	cached := corev1alpha1.ScopeOf(key.Namespace).NewObjectTemplate()
	if err := r.Client.Get(ctx, key, cached); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(key)
		}
		return nil, client.IgnoreNotFound(err)
	}

	tmpl, ok := r.Fresh.Latest(cached).(corev1alpha1.GenericObjectTemplate)
	if !ok {
		return nil, nil // deleted; its event follows
	}

	s := &reconciliation{Reconciler: r, state: r.stateOf(tmpl), view: view{tmpl: tmpl}}
	if key.Namespace != "" && r.Account != "" {
		s.rollout.Account = objects.Account{Namespace: key.Namespace, Name: r.Account}
	}
	return s, nil
}

// ensureFinalizer comes before anything is written for the template.
func (s *reconciliation) ensureFinalizer(ctx context.Context) error {
	return s.Fresh.AddFinalizer(ctx, s.Client, s.tmpl, corev1alpha1.CachedFinalizer)
}

// gatherInputs watches the sources, and reads their state and the environment's.
func (s *reconciliation) gatherInputs(context.Context) error {
	if s.state.plan == nil || s.generation != s.tmpl.GetGeneration() {
		s.state.plan, s.generation, s.state.last = planOf(s.tmpl.ObjectTemplateSpec(), s.rollout.Owner), s.tmpl.GetGeneration(), nil
		s.rollout.Retry() // a refused write can be admitted now
	}

	s.forbidden = s.refusal(s.tmpl.GetNamespace())
	refs, err := s.memory.sourcesOf(s.state, s.rollout.Owner, s.namespaced)
	s.specErr = errors.Join(s.state.plan.err, err)
	if s.specErr != nil || s.forbidden != "" {
		refs = nil
	} else {
		s.sources = make([]sourceState, len(s.state.plan.sources))
	}

	s.refs = refs
	s.watch()
	for i := range s.sources {
		s.sources[i] = s.sourceState(&s.state.plan.sources[i])
	}

	s.environment, s.waiting, err = s.Environment.For(s.tmpl.GetNamespace())
	if err != nil && !s.waiting {
		s.inputErr = "Waiting for information about the cluster: " + err.Error()
	}
	return nil
}

// namespaced returns the scope of a kind, if it is served.
func (s *reconciliation) namespaced(gk schema.GroupKind) (namespaced, known bool) {
	state := s.Target.Cluster.State(gk)
	return state.Namespaced, state.Served
}

// watch watches the sources, and the object in the place of this template's.
func (s *reconciliation) watch() {
	refs := s.refs
	if s.rival != (sources.Ref{}) {
		refs = sources.Union(refs, []sources.Ref{s.rival})
	}
	s.Sources.Use(keyOf(s.tmpl), refs)
	if s.rival != (sources.Ref{}) && s.rivalChanged(s.Sources.State(s.rival)) {
		s.rollout.Retry()
	}
}

// sourceState returns the state of a source, and schedules another look if its kind is not known
// yet.
func (s *reconciliation) sourceState(planned *plannedSource) sourceState {
	known := s.Sources.State(planned.ref)
	switch {
	case errors.Is(known.Err, livestate.ErrNotReady):
		s.Requeue(objectTemplateStart)
	case known.Err != nil && !known.Unserved && !known.Known:
		s.Requeue(objectTemplateRetry)
	}
	return sourceState{plannedSource: planned, State: known}
}
