package packages

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
)

// memory is what this process remembers of Packages. A restart repeats a failed load, a resolution or a repair at most.
type memory struct {
	background.Attempts[loadInput, load]
	// account counts what is loaded and not deployed yet; it may be nil.
	account *quota.Memory
	states  map[types.NamespacedName]*state
	// loading counts Packages that are being loaded, or whose content no status records yet.
	loading int
	// awaited is what the dependencies of Packages were resolved by.
	awaited map[types.NamespacedName][]string
	// missed is what arrived while the dependencies of a Package are being resolved.
	missed map[types.NamespacedName][]func(string) bool
}

// state is what is remembered of one Package, above the lock line for its reconcile alone.
type state struct {
	uid types.UID
	// seen is when this process saw the Package first.
	seen time.Time
	// When the status was written, the deployment repaired, and last observed to be deleted.
	reported, repaired, terminating time.Time
	// drifted reports whether the version of the template was edited.
	template templateVersion
	drifted  bool
	hashKey  []byte
	chosen   rememberedChoice
	// awaited is what the choice of a version was resolved by.
	awaited  []string
	failures queueing.Failures
	// pace is that of the loads of a generation of the Package.
	pace      *rate.Limiter
	pacedFrom int64

	// ---- lock ----

	attempt *attempt
	tag     *tag
	// loads counts loads; took is the duration of the last one that was deployed.
	loads int
	took  time.Duration
	installation
}

// stateOf returns what is remembered of a Package, and nothing of a former one of its name.
func (r *Reconciler) stateOf(pkg corev1alpha1.GenericPackage) *state {
	key, m := keyOf(pkg), &r.memory
	m.Lock()
	st := m.states[key]
	m.Unlock()
	if st != nil && st.uid == pkg.GetUID() {
		return st
	}
	r.forget(key)
	st = &state{uid: pkg.GetUID(), seen: r.Now()}
	m.Lock()
	defer m.Unlock()
	if m.states == nil {
		m.states = map[types.NamespacedName]*state{}
	}
	m.states[key] = st
	return st
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.memory.Lock()
	st := r.memory.states[key]
	delete(r.memory.awaited, key)
	delete(r.memory.missed, key)
	if st != nil {
		st.tag = nil
		delete(r.memory.states, key)
	}
	r.memory.Unlock()
	if st == nil {
		return
	}
	r.memory.Set(&st.attempt, nil)
	r.Sources.Use(key, nil)
	if r.Targets != nil {
		r.Targets.Release(userOf(key))
	}
	r.Fresh.Forget(string(st.uid))
	r.retryOthers(key)
}

// count counts what is loaded and loading where an attempt takes the place of another. It is called with the lock.
func (m *memory) count(before, after *attempt) {
	if keeps(before) && (!keeps(after) || after.Out.memory != before.Out.memory) {
		m.account.Count(before.Out.memory, 0)
	}
	m.loading += inFlight(after) - inFlight(before)
}
