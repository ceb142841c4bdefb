package manager

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/intern"
	"lockstep.run/lockstep/internal/rollout"
)

// slim returns what the caches keep of an object that is not in use yet: of history what
// decisions ask for, and everything that other objects have too in their memory. old
// is what was known under its name, or nil.
func (r *relay) slim(o, old object) object {
	set, isSet := o.(corev1alpha1.GenericObjectSet)
	summarized := isSet && !rollout.Owns(set) && summarize(set)
	shareTexts(o)
	if old != nil && old.GetUID() == o.GetUID() {
		o.SetUID(old.GetUID())
		shareMetadata(o, old)
	}
	r.forget(old)
	ref := metav1.GetControllerOfNoCopy(o)
	if !isSet || ref == nil {
		return o
	}
	// What is the same for both kinds of revisions comes from either.
	same := ofOwner{ref.UID, rollout.Owns(set)}
	for _, of := range []ofOwner{{same.owner, !same.owns}, same} {
		if kin := r.kin[of]; kin != nil {
			shareMetadata(o, kin)
		}
	}
	same.owner = metav1.GetControllerOfNoCopy(o).UID
	if summarized {
		o = r.history.place(o)
	}
	r.kin[same] = o
	return o
}

// history is where sets are that own nothing any more. They are the most there is,
// come one after the other, and go in the same order.
type history struct {
	sets        intern.Slab[corev1alpha1.ObjectSet]
	clusterSets intern.Slab[corev1alpha1.ClusterObjectSet]
	texts       intern.TextSlab
	// last are the conditions of the set that came last: most sets end alike.
	last []metav1.Condition
}

// place moves a set beside the others.
func (h *history) place(o object) object {
	switch set := o.(type) {
	case *corev1alpha1.ObjectSet:
		o = h.sets.Put(*set)
	case *corev1alpha1.ClusterObjectSet:
		o = h.clusterSets.Put(*set)
	}
	o.SetName(h.texts.Put(o.GetName()))
	o.SetUID(types.UID(h.texts.Put(string(o.GetUID()))))
	o.SetResourceVersion(h.texts.Put(o.GetResourceVersion()))
	conds := o.(corev1alpha1.Conditioned).StatusConditions()
	if !slices.Equal(*conds, h.last) {
		h.last = slices.Clone(*conds)
	}
	*conds = h.last
	return o
}

// ofOwner names the sets of one owner that say the same of it: history says less.
type ofOwner struct {
	owner types.UID
	owns  bool
}

// forget lets an object go that was deleted, or that another one follows.
func (r *relay) forget(old object) {
	set, isSet := old.(corev1alpha1.GenericObjectSet)
	if !isSet {
		return
	}
	if ref := metav1.GetControllerOfNoCopy(old); ref != nil {
		if of := (ofOwner{ref.UID, rollout.Owns(set)}); r.kin[of] == old {
			delete(r.kin, of)
		}
	}
}

// remembered are the annotations of history that decisions ask for.
var remembered = []string{
	corev1alpha1.ObjectDeploymentUIDAnnotation, corev1alpha1.SlicedAnnotation, corev1alpha1.SecretSlicedAnnotation,
	corev1alpha1.OrphanedAnnotation, corev1alpha1.PausedByParentAnnotation,
}

// summarize drops from a revision that owns nothing any more what no decision about
// its deployment asks for. What stays says whose it is, which number it has, how it
// ended, and which slices it names. Its status is not written again, so nothing is
// lost on the server. A set that stands alone keeps all of it: its status is written
// once more when it is deleted.
func summarize(set corev1alpha1.GenericObjectSet) bool {
	if rollout.OwnerOf(set).Kind != corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectDeployment") {
		return false
	}
	set.SetLabels(only(set.GetLabels(), corev1alpha1.ObjectDeploymentLabel))
	set.SetAnnotations(only(set.GetAnnotations(), remembered...))
	spec, status := set.ObjectSetSpec(), set.ObjectSetStatus()
	spec.Previous = nil
	var stored []corev1alpha1.ObjectSetTemplatePhase
	for _, p := range spec.Phases {
		if len(p.Slices) > 0 || len(p.SecretSlices) > 0 {
			stored = append(stored, p)
		}
	}
	spec.Phases = exact(stored)
	status.ControllerOf, status.Phases, status.Blocking = nil, nil, nil
	var ends []metav1.Condition
	for _, c := range status.Conditions {
		if c.Type == corev1alpha1.ConditionArchived || c.Type == corev1alpha1.ConditionSucceeded {
			c.Message, c.LastTransitionTime = "", metav1.Time{}
			ends = append(ends, c)
		}
	}
	status.Conditions = ends
	return true
}

// only returns the entries of some keys.
func only(all map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// shareMetadata has an object use the memory of another one for what both say.
func shareMetadata(o, with object) {
	if maps.Equal(o.GetLabels(), with.GetLabels()) {
		o.SetLabels(with.GetLabels())
	}
	if maps.Equal(o.GetAnnotations(), with.GetAnnotations()) {
		o.SetAnnotations(with.GetAnnotations())
	}
	if slices.Equal(o.GetFinalizers(), with.GetFinalizers()) {
		o.SetFinalizers(with.GetFinalizers())
	}
	if equality.Semantic.DeepEqual(o.GetOwnerReferences(), with.GetOwnerReferences()) {
		o.SetOwnerReferences(with.GetOwnerReferences())
	}
}

// shareTexts has an object use the memory of others for texts that come again and
// again, and for the objects that it contains.
func shareTexts(o object) {
	o.SetNamespace(intern.Text(o.GetNamespace()))
	shareKeys(o.GetLabels())
	shareKeys(o.GetAnnotations())
	share(o.GetFinalizers())
	if c, ok := o.(corev1alpha1.Conditioned); ok {
		shareConditions(c.StatusConditions())
	}
	switch o := o.(type) {
	case corev1alpha1.GenericObjectSet:
		spec, status := o.ObjectSetSpec(), o.ObjectSetStatus()
		spec.LifecycleState = intern.Text(spec.LifecycleState)
		sharePhases(spec.Phases)
		sharePhaseStatuses(status.Phases)
		shareControlled(&status.ControllerOf)
	case corev1alpha1.GenericObjectDeployment:
		spec, status := o.ObjectDeploymentSpec(), o.ObjectDeploymentStatus()
		shareKeys(spec.Template.Metadata.Labels)
		if labels := spec.Template.Metadata.Labels; maps.Equal(spec.Selector.MatchLabels, labels) {
			spec.Selector.MatchLabels = labels
		}
		sharePhases(spec.Template.Spec.Phases)
		sharePhaseStatuses(status.Phases)
		shareControlled(&status.ControllerOf)
	}
}

func share[T ~string](texts []T) {
	for i, text := range texts {
		texts[i] = intern.Text(text)
	}
}

// shareKeys has a map use the keys of others: a value of a key that is there brings
// its own.
func shareKeys(m map[string]string) {
	for key, value := range m {
		m[intern.Text(key)] = value
	}
}

// exact gives a slice the memory that it needs: decoding leaves up to as much again.
func exact[T any](s []T) []T {
	if cap(s) == len(s) {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

func shareConditions(conds *[]metav1.Condition) {
	*conds = exact(*conds)
	for i := range *conds {
		c := &(*conds)[i]
		c.Type, c.Status, c.Reason, c.Message = intern.Text(c.Type), intern.Text(c.Status), intern.Text(c.Reason), intern.Text(c.Message)
	}
}

func sharePhases(phases []corev1alpha1.ObjectSetTemplatePhase) {
	for i := range phases {
		p := &phases[i]
		p.Name, p.Class = intern.Text(p.Name), intern.Text(p.Class)
		share(p.Slices)
		share(p.SecretSlices)
		p.Objects = exact(p.Objects)
		for j := range p.Objects {
			o := &p.Objects[j]
			o.Object.Raw, o.CollisionProtection = intern.Content(o.Object.Raw), intern.Text(o.CollisionProtection)
		}
	}
}

func sharePhaseStatuses(phases []corev1alpha1.PhaseStatus) {
	for i := range phases {
		p := &phases[i]
		p.Name, p.State = intern.Text(p.Name), intern.Text(p.State)
	}
}

func shareControlled(refs *[]corev1alpha1.ControlledObjectReference) {
	*refs = exact(*refs)
	for i := range *refs {
		r := &(*refs)[i]
		r.Kind, r.Group, r.Namespace, r.Version = intern.Text(r.Kind), intern.Text(r.Group), intern.Text(r.Namespace), intern.Text(r.Version)
	}
}
