package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// checkCommands judge the invariants.
var checkCommands = commands{
	// check: waits until the cluster is in the state that the script requested, and judges
	// the audit log:
	//
	//   - each object of each package's current version exists with the values of its
	//     template, controlled by the deployment; the namespace has no other object with
	//     the engine's label (4, 6);
	//   - one ObjectSet per package is not archived (3);
	//   - package invariants judges each step of the script: the order of phases and
	//     gates (1), deletions (2), and the reverse order (6).
	//
	// With "!": it is not in the desired state at this moment; stderr has the reason.
	"check": func(s *scenario, neg bool, args []string) {
		limit, args := s.within(args)
		s.usage(len(args) == 0, "check [--within=DURATION]")
		if neg {
			s.outcome(neg, s.asAsked(s.Context()))
			return
		}
		s.eventually(limit, "all objects to be as desired", s.asAsked)
		for i := range s.steps {
			s.judgeStep(i)
		}
	},
}

// asAsked returns nil if the cluster is in the state of the last steps. Otherwise the error
// lists all differences, because the manager can report an object before or after the check
// reads it.
func (s *scenario) asAsked(ctx context.Context) error {
	var all []error
	wanted := map[string]bool{}
	desired := s.desired()
	seen := &look{scenario: s, lists: map[listed]listing{}, deployments: map[string]types.UID{}}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		version := desired[name]
		if version == "" {
			all = append(all, s.absent(ctx, name))
			continue
		}
		all = append(all, s.available(ctx, name), s.oneActiveSet(ctx, name))
		for _, o := range s.contents(name, version) {
			wanted[o.id()] = true
			if err := seen.inPlace(ctx, name, o); err != nil {
				all = append(all, fmt.Errorf("%s of %s %s: %w", o.id(), name, version, err))
			}
		}
	}
	return errors.Join(append(all, seen.nothingElse(ctx, wanted))...)
}

// look reads each kind once per check, because there can be hundreds of objects.
type look struct {
	*scenario
	lists map[listed]listing
	// deployments are the UIDs of the packages' ObjectDeployments that were read.
	deployments map[string]types.UID
}

type listed struct {
	kind      schema.GroupVersionKind
	namespace string
}

type listing struct {
	items []unstructured.Unstructured
	err   error
}

func (l *look) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	key := listed{kind, namespace}
	found, done := l.lists[key]
	if !done {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		found.err = l.env.Client.List(ctx, list, client.InNamespace(namespace))
		found.items = list.Items
		l.lists[key] = found
	}
	return found.items, found.err
}

func (l *look) deployment(ctx context.Context, name string) (types.UID, error) {
	if uid, done := l.deployments[name]; done {
		return uid, nil
	}
	dep := &corev1alpha1.ObjectDeployment{}
	if err := l.env.Client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, dep); err != nil {
		return "", err
	}
	l.deployments[name] = dep.UID
	return dep.UID, nil
}

// inPlace returns nil if an object exists with the values of its template.
func (l *look) inPlace(ctx context.Context, pkg string, o object) error {
	all, err := l.list(ctx, o.template.GroupVersionKind(), l.namespaceOf(o))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(live unstructured.Unstructured) bool { return live.GetName() == o.template.GetName() })
	if i < 0 {
		return errors.New("it was not found")
	}
	live := &all[i]
	if missing := difference(o.template.Object, live.Object, ""); missing != "" {
		return fmt.Errorf("%s differs from the template", missing)
	}
	if live.GetDeletionTimestamp() != nil {
		return errors.New("it is terminating")
	}
	owner := metav1.GetControllerOf(live)
	if owner == nil || owner.Kind != "ObjectDeployment" || owner.Name != pkg {
		return fmt.Errorf("it is controlled by %v", owner)
	}
	uid, err := l.deployment(ctx, pkg)
	if err != nil {
		return err
	}
	if uid != owner.UID {
		return fmt.Errorf("it is controlled by UID %s, the deployment is %s", owner.UID, uid)
	}
	return nil
}

// difference returns the path of the first value of want that got has not; lists
// have as many elements.
func difference(want, got any, path string) string {
	if want, ok := want.([]any); ok {
		got, _ := got.([]any)
		if len(want) != len(got) {
			return path
		}
		for i := range want {
			if d := difference(want[i], got[i], fmt.Sprintf("%s[%d]", path, i)); d != "" {
				return d
			}
		}
		return ""
	}
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

// nothingElse returns nil if only the wanted objects have the engine's label.
func (l *look) nothingElse(ctx context.Context, wanted map[string]bool) error {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range l.releases {
		for _, o := range r.objects {
			kinds[o.template.GroupVersionKind()] = true
		}
	}
	for gvk := range kinds {
		all, err := l.list(ctx, gvk, l.namespace)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue // a version that is no longer served
		} else if err != nil {
			return err
		}
		for i := range all {
			if id := (object{template: &all[i]}).id(); all[i].GetLabels()[corev1alpha1.CacheLabel] == corev1alpha1.CacheLabelValue && !wanted[id] {
				return fmt.Errorf("%s is there, which no version asked for contains", id)
			}
		}
	}
	return nil
}

// judgeStep judges the requests between a step and the next one of its package.
func (s *scenario) judgeStep(i int) {
	at, until, before, last, whole := s.steps[i], time.Now(), "", true, true
	begin := s.taken(at)
	for j, other := range s.steps {
		if other.name == at.name && j < i {
			before, whole = other.version, other.ended
		}
		if other.name == at.name && j > i {
			until, last = s.taken(other), false
			break
		}
	}
	s.steps[i].ended = at.ended || last
	if at.restored {
		before = at.version
	}
	entries, err := s.audit.Since(s.Context(), s.start, sandbox.Writes(), func(e sandbox.Entry) bool {
		return e.Received.After(begin) && e.Received.Before(until)
	})
	s.check(err)
	from, to := s.contents(at.name, before), s.contents(at.name, at.version)
	if !whole {
		from = s.made(from, begin)
	}
	step := invariants.Step{
		Name: strings.TrimSpace(at.name + " " + at.version), Manager: harness.ManagerUser(),
		From: s.contentOf(from), To: s.contentOf(to), Writes: entries, Gated: s.gated(to),
		Drifted: s.drifted(entries), Unfinished: !s.steps[i].ended,
	}
	for _, v := range step.Judge() {
		s.Error(v)
	}
}

// made returns the objects that the manager had written by a time. If a version was replaced
// before it was complete, some of its objects might never have existed.
func (s *scenario) made(objects []object, until time.Time) []object {
	entries, err := s.audit.Since(s.Context(), s.start, byManager[0], sandbox.Writes(), func(e sandbox.Entry) bool {
		return e.Code < 300 && e.Received.Before(until)
	})
	s.check(err)
	written := map[invariants.Object]bool{}
	for _, e := range entries {
		written[invariants.Of(e)] = true
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return !written[s.audited(o)] })
}

// taken returns when the engine took over a step: when it created the revision, or deleted
// the deployment. Until then, the engine and a new leader continue to roll out the previous
// revision.
func (s *scenario) taken(at step) time.Time {
	if at.restored {
		return at.at
	}
	verb, resource := "create", "objectsets"
	if at.version == "" {
		verb, resource = "delete", "objectdeployments"
	}
	entries, err := s.audit.Since(s.Context(), s.start, byManager[0], sandbox.ByVerb(verb), func(e sandbox.Entry) bool {
		return e.Received.After(at.at) && e.Code < 300 && e.Object.Namespace == s.namespace && e.Object.Resource == resource
	})
	s.check(err)
	if len(entries) == 0 {
		return at.at
	}
	return entries[0].Received
}

// contentOf returns the objects of a version in the judges' form.
func (s *scenario) contentOf(objects []object) invariants.Content {
	content := invariants.Content{}
	for _, o := range objects {
		text, err := json.Marshal(o.template.Object)
		s.check(err)
		content[s.audited(o)] = invariants.Place{
			Phase: o.phase, Content: string(text),
			Keep: o.template.GetAnnotations()["package-operator.run/deletion-policy"] == "Keep",
		}
	}
	return content
}

func (s *scenario) gated(objects []object) func(invariants.Object) bool {
	gates := map[invariants.Object]bool{}
	for _, o := range objects {
		gates[s.audited(o)] = o.gated
	}
	return func(o invariants.Object) bool { return gates[o] }
}

// drifted returns the objects that other clients wrote, except writes that make gates ready.
func (s *scenario) drifted(entries []sandbox.Entry) []invariants.Object {
	var found []invariants.Object
	for _, e := range entries {
		if e.User != harness.ManagerUser() && e.Code < 300 && !strings.Contains(e.RequestURI, "fieldManager="+operator) {
			found = append(found, invariants.Of(e))
		}
	}
	return found
}

// restored returns the steps to judge after a restore: those before the snapshot. Later steps are
// not judged, because the restored cluster does not know them.
func (s *scenario) restored(steps []step) []step {
	kept := slices.Clone(steps)
	now := time.Now()
	for i := range kept {
		kept[i].at, kept[i].restored = now, true
	}
	return kept
}

func stamp(t time.Time) string { return t.Format("15:04:05.000000") }
