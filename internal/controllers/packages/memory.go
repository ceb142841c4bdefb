package packages

import (
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
)

// stateOf returns the memory of a Package, and nothing of a former one of its name.
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

// count counts loaded and loading content where an attempt takes the place of another. It
// is called with the lock.
func (m *memory) count(before, after *attempt) {
	if keeps(before) && (!keeps(after) || after.Out.memory != before.Out.memory) {
		m.account.Count(before.Out.memory, 0)
	}
	m.loading += inFlight(after) - inFlight(before)
}

// keeps reports whether an attempt has content in memory that is not deployed yet.
func keeps(a *attempt) bool { return a != nil && a.Out.content != nil && a.Out.deployed.IsZero() }

// inFlight returns 1 for an attempt that goes on, or whose content no status records yet.
func inFlight(a *attempt) int {
	if a == nil || a.Err != nil {
		return 0
	}
	return 1
}

// remembered returns what the catalogue remembers of a Package; nil for one that is not reconciled.
func (r *Reconciler) remembered(pkg corev1alpha1.GenericPackage) *choice.Memory {
	r.memory.Lock()
	defer r.memory.Unlock()
	if st := r.memory.states[keyOf(pkg)]; st != nil && st.uid == pkg.GetUID() {
		return &st.choice
	}
	return nil
}
