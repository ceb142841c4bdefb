package convergence_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// meddle changes objects that the manager wrote, as a careless user might.
func (w *world) meddle(t *testing.T, s *subject) {
	t.Helper()
	var err error
	switch w.random.IntN(10) {
	case 0, 1, 2, 3, 4:
		err = w.meddleWithObject(t.Context(), s)
	case 5, 6, 7:
		err = w.meddleWithDeployment(t.Context(), s)
	case 8:
		err = w.meddleWithSet(t.Context(), s)
	default:
		err = w.meddleWithSlice(t.Context(), s)
	}
	require.NoError(t, tolerable(err))
}

// merge sends a merge patch.
func merge(ctx context.Context, obj client.Object, patch string) error {
	return env.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("someone"))
}

// pick returns a random element of a list, independently of the list's order; ok is false if it
// is empty.
func pick[T client.Object](w *world, all []T) (one T, ok bool) {
	n := w.random.IntN(1 << 20)
	if len(all) == 0 {
		return one, false
	}
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all[n%len(all)], true
}

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// ownerless removes an object's owner references.
const ownerless = `{"metadata":{"ownerReferences":null}}`

// tookOwner notes that an object of s has no owner until the manager corrects it. If the Package
// is deleted before that, because no manager runs or it is paused, the object stays without an
// owner. The next Package must only adopt it if its collision protection allows that.
func (w *world) tookOwner(ctx context.Context, s *subject, name string) error {
	s.ownerless[name] = true
	if !w.healed {
		return nil
	}
	s.spec.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController
	return s.apply(ctx)
}

func (w *world) meddleWithObject(ctx context.Context, s *subject) error {
	list := &corev1.ConfigMapList{}
	if err := env.Client.List(ctx, list, client.InNamespace(s.objects)); err != nil {
		return err
	}
	of := slices.DeleteFunc(pointers(list.Items), func(cm *corev1.ConfigMap) bool {
		return !strings.HasPrefix(cm.Name, s.name+"-") || cm.Name == s.name+"-values"
	})
	cm, ok := pick(w, of)
	// The engine ignores fields that a template lacks, so change one that all templates have.
	key := "value"
	if ok && cm.Data[key] == "" {
		key = "size"
	}
	patches := []string{
		fmt.Sprintf(`{"data":{%q:"drifted"}}`, key), `{"data":null}`, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, corev1alpha1.CacheLabel),
		`{"metadata":{"labels":{"package-operator.run/package":"another"}}}`, ownerless, "",
	}
	patch := patches[w.random.IntN(len(patches))]
	if !ok {
		return nil
	}
	if patch == "" {
		w.note("%s: %s is deleted", s, cm.Name)
		return env.Client.Delete(ctx, cm)
	}
	w.note("%s: %s is patched with %s", s, cm.Name, patch)
	if err := merge(ctx, cm, patch); err != nil || patch != ownerless {
		return err
	}
	return w.tookOwner(ctx, s, cm.Name)
}

func (w *world) meddleWithDeployment(ctx context.Context, s *subject) error {
	dep := s.scope.NewObjectDeployment()
	n := w.random.IntN(5)
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(s.object()), dep); err != nil {
		return err
	}
	switch n {
	case 0:
		w.note("%s: its deployment is deleted", s)
		return env.Client.Delete(ctx, dep, client.PropagationPolicy(metav1.DeletePropagationBackground))
	case 1:
		w.note("%s: its deployment is paused by hand", s)
		return merge(ctx, dep, `{"spec":{"paused":true}}`)
	case 2:
		w.note("%s: its deployment is to report drift", s)
		return merge(ctx, dep, `{"spec":{"driftPolicy":"Report","revisionHistoryLimit":7}}`)
	}
	template := &dep.ObjectDeploymentSpec().Template.Spec
	before := dep.DeepCopyObject().(client.Object)
	if !vandalise(template) {
		return nil
	}
	w.note("%s: the template of its deployment is edited", s)
	return env.Client.Patch(ctx, dep, client.MergeFrom(before))
}

// vandalise changes the first object in the template itself. If there is none, it removes the last
// phase.
func vandalise(template *corev1alpha1.ObjectSetTemplateSpec) bool {
	for i := range template.Phases {
		for j := range template.Phases[i].Objects {
			var object map[string]any
			raw := &template.Phases[i].Objects[j].Object
			if json.Unmarshal(raw.Raw, &object) != nil || object["kind"] != "ConfigMap" {
				continue
			}
			object["data"] = map[string]any{"value": "edited"}
			raw.Raw, _ = json.Marshal(object)
			return true
		}
	}
	if n := len(template.Phases); n > 1 {
		template.Phases = template.Phases[:n-1]
		return true
	}
	return false
}

func (w *world) meddleWithSet(ctx context.Context, s *subject) error {
	list := s.scope.NewObjectSetList()
	if err := env.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	var of []corev1alpha1.GenericObjectSet
	for _, set := range list.GenericObjectSets() {
		if strings.HasPrefix(set.GetName(), s.name+"-") {
			of = append(of, set)
		}
	}
	set, ok := pick(w, of)
	archive := w.random.IntN(2) == 0
	switch {
	case !ok:
		return nil
	case archive && set.ObjectSetSpec().LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived:
		w.note("%s: %s is archived by hand", s, set.GetName())
		return merge(ctx, set, `{"spec":{"lifecycleState":"Archived"}}`)
	}
	w.note("%s: %s is deleted", s, set.GetName())
	return env.Client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

func (w *world) meddleWithSlice(ctx context.Context, s *subject) error {
	list := s.scope.NewObjectSliceList()
	if err := env.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	var of []corev1alpha1.GenericObjectSlice
	for _, slice := range list.GenericObjectSlices() {
		if strings.HasPrefix(slice.GetName(), s.name+"-") {
			of = append(of, slice)
		}
	}
	slice, ok := pick(w, of)
	force := w.random.IntN(2) == 0
	if !ok {
		return nil
	}
	w.note("%s: %s is deleted, by force %t", s, slice.GetName(), force)
	if err := env.Client.Delete(ctx, slice); err != nil || !force {
		return err
	}
	return merge(ctx, slice, `{"metadata":{"finalizers":null}}`)
}
