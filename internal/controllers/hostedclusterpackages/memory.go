package hostedclusterpackages

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/phases/drift"
)

const (
	hostedProblemBytes = 512             // of why a Package cannot be written
	hostedRetryMin     = time.Second     // after a write of a Package that was refused, doubled each time
	hostedRetryMax     = 5 * time.Minute // fields may be released without a trace in the Package's content
)

// of returns the state of an owner. A recreated owner with the same name starts with an empty
// state.
func (m *memory) of(owner *corev1alpha1.HostedClusterPackage) *state {
	m.Lock()
	defer m.Unlock()
	st := m.states[owner.Name]
	if st == nil || st.uid != owner.UID {
		if m.states == nil {
			m.states = map[string]*state{}
		}
		st = &state{uid: owner.UID, refusals: map[string]*refusal{}, applied: map[types.UID]string{}}
		m.states[owner.Name] = st
	}
	return st
}

func (m *memory) forget(name string) {
	m.Lock()
	defer m.Unlock()
	delete(m.states, name)
}

// forgetOthers drops the memory of Packages that no longer exist.
func (s *state) forgetOthers(packages map[string]*corev1alpha1.Package, targets []target) {
	wanted := map[string]bool{}
	for i := range targets {
		wanted[targets[i].namespace] = true
	}
	exist := map[types.UID]bool{}
	for namespace, pkg := range packages {
		wanted[namespace], exist[pkg.UID] = true, true
	}
	maps.DeleteFunc(s.refusals, func(namespace string, _ *refusal) bool { return !wanted[namespace] })
	maps.DeleteFunc(s.applied, func(uid types.UID, _ string) bool { return !exist[uid] })
}

// isUpdated reports whether a Package matches the template, or the form that the API server gave
// it.
func (s *reconciliation) isUpdated(pkg *corev1alpha1.Package) (bool, error) {
	updated, err := s.template.matches(pkg)
	if err != nil || updated || s.state.applied[pkg.UID] == "" {
		return updated, err
	}
	digest, err := s.inputOf(pkg)
	return s.state.applied[pkg.UID] == digest, err
}

// inputOf identifies the template and the present state of a Package; pkg can be nil.
func (s *reconciliation) inputOf(pkg *corev1alpha1.Package) (string, error) {
	if pkg == nil {
		return s.template.hash, nil
	}
	content, err := contentOf(pkg.Labels, pkg.Annotations, &pkg.Spec)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s", s.template.hash, pkg.UID, drift.Hash(content)), nil
}

// recall adds to a target that its write was refused. It ends with the input, or when it is time to
// try again.
func (s *reconciliation) recall(t *target, pkg *corev1alpha1.Package) {
	last := s.state.refusals[t.namespace]
	if last == nil {
		return
	}

	input, err := s.inputOf(pkg)
	if err != nil || last.input != input || t.updated || t.foreign {
		delete(s.state.refusals, t.namespace)
		return
	}

	s.problems = append(s.problems, problem{t.namespace, corev1alpha1.ReasonApplyError, last.message, !last.final})
	if wait := last.retry.Sub(s.now); wait > 0 {
		t.refused, t.retry = last.final, !last.final
		s.Requeue(wait)
	}
}

// refuse remembers why a Package could not be written.
func (s *reconciliation) refuse(namespace string, pkg *corev1alpha1.Package, err error) {
	input, encodeErr := s.inputOf(pkg)
	if encodeErr != nil {
		return
	}

	r := &refusal{input: input, message: conditions.Cut(conditions.Message(err.Error()), hostedProblemBytes)}
	switch apply.Classify(err) {
	case apply.FieldConflict, apply.Blocked, apply.StaleFields, apply.Absent, apply.NamespaceTerminating:
		r.final = true
	}

	if last := s.state.refusals[namespace]; last != nil && last.input == input {
		r.times = last.times + 1
	}

	pause := hostedRetryMin << min(r.times, 16)
	r.retry = s.now.Add(s.Pace.Of(min(pause, hostedRetryMax)))
	s.state.refusals[namespace] = r
}
