package packages

import (
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
)

// stateOf returns the memory of a Package, without the memory of a former Package of the same name.
func (r *Reconciler) stateOf(pkg corev1alpha1.GenericPackage) *state {
	key, m := keyOf(pkg), &r.memory
	m.Lock()
	st := m.states[key]
	m.Unlock()
	if st != nil && st.uid == pkg.GetUID() {
		return st
	}

	r.forget(key)
	st = &state{uid: pkg.GetUID(), seen: r.Now(), load: r.loads.Meet(pkg)}
	m.Lock()
	defer m.Unlock()
	if m.states == nil {
		m.states = map[types.NamespacedName]*state{}
	}

	m.states[key] = st
	return st
}

// forget drops everything that is kept for a package that no longer exists: its watches, its
// target, its loads and its place in the ledger.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.memory.Lock()
	st := r.memory.states[key]
	delete(r.memory.states, key)
	r.memory.Unlock()
	r.ledger.Drop(key)
	if st == nil {
		return
	}

	r.Sources.Use(key, nil)
	if r.Targets != nil {
		r.Targets.Release(userOf(key))
	}

	r.Fresh.Forget(string(st.uid))
	r.loads.Forget(key)
}

// remembered returns the catalogue's memory of a Package; nil if the Package is not reconciled.
func (r *Reconciler) remembered(pkg corev1alpha1.GenericPackage) *choice.Memory {
	r.memory.Lock()
	defer r.memory.Unlock()
	if st := r.memory.states[keyOf(pkg)]; st != nil && st.uid == pkg.GetUID() {
		return &st.choice
	}
	return nil
}
