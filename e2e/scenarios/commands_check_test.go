package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
)

// checkCommands judge the invariants.
var checkCommands = commands{
	// check: waits until everything is as the script asked for, and judges the way
	// there by the audit log:
	//
	//   - each object of the present version of each package is there, with the
	//     values of its template, controlled by the deployment; no other object with
	//     the engine's label is in the namespace (4, 6);
	//   - one ObjectSet per package is not archived, and it is Available (3);
	//   - nothing was deleted that the version asked for contained (2);
	//   - what a step changes was written phase after phase, and no phase before the
	//     gates of the earlier ones were made ready (1);
	//   - what a step removes went in the reverse order of the phases (6).
	"check": func(s *scenario, _ bool, args []string) {
		limit, args := s.within(args)
		s.usage(len(args) == 0, "check [--within=DURATION]")
		s.eventually(limit, "everything to be as asked for", s.asAsked)
		for i := range s.steps {
			s.judgeStep(i)
		}
	},
}

// asAsked is nil where the cluster is as the last steps want it.
func (s *scenario) asAsked(ctx context.Context) error {
	wanted := map[string]bool{}
	for name, version := range s.desired() {
		if version == "" {
			if err := s.absent(ctx, name); err != nil {
				return err
			}
			continue
		}
		if err := s.available(ctx, name); err != nil {
			return err
		}
		if err := s.oneActiveSet(ctx, name); err != nil {
			return err
		}
		for _, o := range s.releases[name+" "+version].objects {
			wanted[o.id()] = true
			if err := s.inPlace(ctx, name, o); err != nil {
				return fmt.Errorf("%s of %s %s: %w", o.id(), name, version, err)
			}
		}
	}
	return s.nothingElse(ctx, wanted)
}

// inPlace is nil where an object is live with the values of its template.
func (s *scenario) inPlace(ctx context.Context, pkg string, o object) error {
	live := o.template.DeepCopy()
	live.SetNamespace(s.namespaceOf(o))
	if err := s.get(ctx, live); err != nil {
		return err
	}
	if missing := difference(o.template.Object, live.Object, ""); missing != "" {
		return fmt.Errorf("%s differs from the template", missing)
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("it is terminating")
	}
	owner := metav1.GetControllerOf(live)
	if owner == nil || owner.Kind != "ObjectDeployment" || owner.Name != pkg {
		return fmt.Errorf("it is controlled by %v", owner)
	}
	dep := &corev1alpha1.ObjectDeployment{}
	if err := s.env.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: pkg}, dep); err != nil {
		return err
	}
	if dep.UID != owner.UID {
		return fmt.Errorf("it is controlled by UID %s, the deployment is %s", owner.UID, dep.UID)
	}
	return nil
}

// difference returns the path of the first value of want that got has not; lists
// are compared as a whole.
func difference(want, got any, path string) string {
	if want, ok := want.(map[string]any); ok {
		got, _ := got.(map[string]any)
		for key, value := range want {
			if d := difference(value, got[key], path+"."+key); d != "" {
				return d
			}
		}
		return ""
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return path
	}
	return ""
}

func (s *scenario) absent(ctx context.Context, pkg string) error {
	for _, kind := range []string{"package", "objectdeployment"} {
		if err := s.get(ctx, s.object(kind+".package-operator.run/"+pkg)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s is there: %w", kind, pkg, err)
		}
	}
	return nil
}

func (s *scenario) oneActiveSet(ctx context.Context, pkg string) error {
	sets := &corev1alpha1.ObjectSetList{}
	if err := s.env.Client.List(ctx, sets, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	var active []string
	for i := range sets.Items {
		set := &sets.Items[i]
		owner := metav1.GetControllerOf(set)
		if owner != nil && owner.Name == pkg && set.Spec.LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived {
			active = append(active, set.Name)
		}
	}
	if len(active) != 1 {
		return fmt.Errorf("the active sets of %s are %v", pkg, active)
	}
	return nil
}

// nothingElse is nil where no object carries the engine's label but those that
// are wanted.
func (s *scenario) nothingElse(ctx context.Context, wanted map[string]bool) error {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range s.releases {
		for _, o := range r.objects {
			kinds[o.template.GroupVersionKind()] = true
		}
	}
	for gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := s.env.Client.List(ctx, list, client.InNamespace(s.namespace),
			client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue}); err != nil {
			return err
		}
		for i := range list.Items {
			if id := (object{template: &list.Items[i]}).id(); !wanted[id] {
				return fmt.Errorf("%s is there, which no version asked for contains", id)
			}
		}
	}
	return nil
}

// judgeStep judges what happened between a step and the next one of its package.
func (s *scenario) judgeStep(i int) {
	step, until := s.steps[i], time.Now()
	before := ""
	for j, other := range s.steps {
		if other.name == step.name && j < i {
			before = other.version
		}
		if other.name == step.name && j > i {
			until = other.at
			break
		}
	}
	from, to := s.contents(step.name, before), s.contents(step.name, step.version)
	entries, err := s.audit.Since(s.Context(), 0, sandbox.Writes(), func(e sandbox.Entry) bool {
		return e.Code < 300 && e.Object.Subresource == "" && e.Received.After(step.at) && e.Received.Before(until)
	})
	s.check(err)
	h := history{s, step, entries}
	h.judgeDeletes(from, to)
	h.judgeOrder(from, to)
}

// contents are the objects of a version, none without a version.
func (s *scenario) contents(name, version string) map[resourceName]object {
	contents := map[resourceName]object{}
	if r := s.releases[name+" "+version]; r != nil {
		for _, o := range r.objects {
			contents[s.resourceName(o)] = o
		}
	}
	return contents
}

// history is what was written from one step to the next one.
type history struct {
	*scenario
	step    step
	entries []sandbox.Entry
}

func nameOf(e sandbox.Entry) resourceName {
	return resourceName{e.Object.Resource, e.Object.Namespace, e.Object.Name}
}

func (h history) byManager(verb string) []sandbox.Entry {
	return slices.DeleteFunc(slices.Clone(h.entries), func(e sandbox.Entry) bool { return e.Verb != verb || !byManager[0](e) })
}

// judgeDeletes: nothing is deleted that the version contains, and what goes, goes
// in reverse.
func (h history) judgeDeletes(from, to map[resourceName]object) {
	deletes := h.byManager("delete")
	for _, e := range deletes {
		if o, has := to[nameOf(e)]; has {
			h.Errorf("%s was deleted, which %s %s contains", o.id(), h.step.name, h.step.version)
		}
		o, known := from[nameOf(e)]
		if !known {
			continue
		}
		for _, other := range deletes {
			if p, known := from[nameOf(other)]; known && o.phase < p.phase && e.Received.Before(other.Done) {
				h.Errorf("%s was deleted at %s, before %s of a later phase at %s", o.id(), stamp(e.Received), p.id(), stamp(other.Done))
			}
		}
	}
}

// judgeOrder: the first writes of what the step changes come phase after phase,
// and after the gates of the earlier phases were made ready.
func (h history) judgeOrder(from, to map[resourceName]object) {
	first := map[resourceName]sandbox.Entry{}
	for _, e := range h.byManager("patch") {
		o, has := to[nameOf(e)]
		if !has || !differs(o, from[nameOf(e)]) {
			continue
		}
		if _, seen := first[nameOf(e)]; !seen {
			first[nameOf(e)] = e
		}
	}
	for late, e := range first {
		for early, before := range first {
			if to[early].phase >= to[late].phase {
				continue
			}
			if e.Received.Before(before.Done) {
				h.Errorf("%s was written at %s, before %s of an earlier phase at %s", to[late].id(), stamp(e.Received), to[early].id(), stamp(before.Done))
			}
			if at := h.madeReady(early); to[early].gated && e.Received.Before(at) {
				h.Errorf("%s was written at %s, before %s was ready at %s", to[late].id(), stamp(e.Received), to[early].id(), stamp(at))
			}
		}
	}
}

// differs tells whether a step changes the content of an object.
func differs(after, before object) bool {
	return before.template == nil || difference(after.template.Object, before.template.Object, "") != ""
}

// madeReady returns when a gate was first made ready in this time.
func (h history) madeReady(gate resourceName) time.Time {
	for _, e := range h.entries {
		if nameOf(e) == gate && strings.Contains(e.RequestURI, "fieldManager=operator") {
			return e.Received
		}
	}
	return time.Time{}
}

func stamp(t time.Time) string { return t.Format("15:04:05.000000") }

// restored returns the steps that count after a restore: what the script had
// asked for until the snapshot, as of now; what was before that is judged no
// more, since it did not happen.
func (s *scenario) restored(steps []step) []step {
	kept := slices.Clone(steps)
	now := time.Now()
	for i := range kept {
		kept[i].at = now
	}
	return kept
}
