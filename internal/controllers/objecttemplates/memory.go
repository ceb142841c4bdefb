package objecttemplates

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

const (
	objectTemplateBurst    = 20              // renderings in a row; templates that are sources of each other might render forever
	objectTemplateInterval = 2 * time.Second // between renderings after that
)

// memory is the memory of this process about templates. A restart renders each once.
type memory struct {
	sync.Mutex
	states map[types.NamespacedName]*state
}

// state is the memory of one template. The fields above the lock line are only for its reconcile.
type state struct {
	uid     types.UID
	rollout *engine.Rollout
	// plan is the spec of a generation.
	plan       *plan
	generation int64
	// last is the last rendering, and written the object in the rollout; nil if there is none.
	last    *rendering
	written *objects.Desired
	// rival is the object in the place of this template's that has another owner, empty if there is
	// none. rivalVersion is its last observed version, nil before the first.
	rival        sources.Ref
	rivalVersion *string
	// former are objects that were rendered before.
	former map[objects.Key]struct{}
	pace   *rate.Limiter
	// reported is when the status was written.
	reported time.Time
	failures queueing.Failures

	// ---- lock ----

	// kind is the kind of the object, or the kind that is waited for.
	kind schema.GroupKind
	// misplaced are the kinds of the sources whose scope does not fit.
	misplaced []schema.GroupKind
	renders   int
}

// stateOf returns the memory of a template, without the memory of a former template of the same
// name.
func (r *Reconciler) stateOf(tmpl corev1alpha1.GenericObjectTemplate) *state {
	key, m := keyOf(tmpl), &r.memory
	m.Lock()
	st := m.states[key]
	m.Unlock()
	if st != nil && st.uid == tmpl.GetUID() {
		return st
	}

	r.forget(key)
	owner := objects.Owner{
		Names:    apinames.Default,
		OwnerKey: objects.OwnerKey{Kind: corev1alpha1.ScopeOf(key.Namespace).Kind(kind), Namespace: key.Namespace, Name: key.Name},
		UID:      tmpl.GetUID(),
	}

	st = &state{
		uid: tmpl.GetUID(), rollout: engine.NewSingle(owner), former: map[objects.Key]struct{}{},
		pace: rate.NewLimiter(rate.Every(objectTemplateInterval), objectTemplateBurst),
	}

	st.rollout.Claims = r.Claims
	m.Lock()
	defer m.Unlock()
	if m.states == nil {
		m.states = map[types.NamespacedName]*state{}
	}

	m.states[key] = st
	return st
}

// forget drops the memory of a template, its watches and its claims.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.memory.Lock()
	st := r.memory.states[key]
	delete(r.memory.states, key)
	r.memory.Unlock()
	r.Sources.Use(key, nil)
	if st != nil {
		r.Memory.Count(st.held(), 0)
		r.Target.Forget(st.rollout)
		r.Claims.Release(st.rollout.Owner)
	}
}

// await records the kind of the object of a template.
func (m *memory) await(st *state, gk schema.GroupKind) {
	m.Lock()
	defer m.Unlock()
	st.kind = gk
}

// awaitScopes records the kinds whose scopes do not fit; nil if there are none.
func (m *memory) awaitScopes(st *state, kinds []schema.GroupKind) {
	m.Lock()
	defer m.Unlock()
	st.misplaced = kinds
}

// sourcesOf returns the objects that the sources of a template name. If the scope of one does not
// fit, the template waits for a change of its kind. It starts to wait before the scope is looked
// up, so that it does not miss a change in between.
func (m *memory) sourcesOf(
	st *state, self objects.Owner, namespaced func(schema.GroupKind) (namespaced, known bool),
) ([]sources.Ref, error) {
	m.awaitScopes(st, st.plan.kinds())
	refs, err := st.plan.scopes(self, namespaced)
	if err == nil {
		m.awaitScopes(st, nil)
	}
	return refs, err
}

// awaiting returns the templates whose object is of a kind, or that have a source of it whose scope
// might not fit.
func (m *memory) awaiting(gk schema.GroupKind) []types.NamespacedName {
	m.Lock()
	defer m.Unlock()
	var keys []types.NamespacedName
	for key, st := range m.states {
		if st.kind == gk || slices.Contains(st.misplaced, gk) {
			keys = append(keys, key)
		}
	}
	return keys
}

// countRender counts a rendering for the metrics.
func (m *memory) countRender(st *state) {
	m.Lock()
	defer m.Unlock()
	st.renders++
}

// rivalChanged records the state of the rival, and reports whether it changed. The first state is a
// change, too: an object that was deleted before its watch started has no version in it.
func (s *state) rivalChanged(observed sources.State) bool {
	if !observed.Known || s.rivalVersion != nil && *s.rivalVersion == observed.Version {
		return false
	}
	s.rivalVersion = &observed.Version
	return true
}
