package objectdeployments

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	inmemory "lockstep.run/lockstep/test/memory"
)

// object is the part of one state of an object that the invariants are about.
type object struct {
	uid     types.UID
	version int64
	// value is all content except the release label: the template's, or another client's.
	value, release string
	// fixed is a part of the template's value that cannot be changed.
	fixed       string
	labelled    bool // with the label of the watch
	keep        bool // annotated with deletion-policy: Keep
	adoptable   bool // by the deployment, according to the annotation
	owners      []objects.Reference
	healthy     bool
	terminating bool
	finalizers  []string
}

func objectOf(u *unstructured.Unstructured) *object {
	if u == nil {
		return nil
	}
	t := &object{
		uid: u.GetUID(), release: u.GetLabels()[corev1alpha1.PackageInstanceLabel], owners: apinames.Default.References(u.GetOwnerReferences(), u.GetAnnotations()),
		labelled:    u.GetLabels()[corev1alpha1.CacheLabel] == corev1alpha1.CacheLabelValue,
		keep:        u.GetAnnotations()[corev1alpha1.DeletionPolicyAnnotation] == corev1alpha1.DeletionPolicyKeep,
		adoptable:   u.GetAnnotations()[corev1alpha1.AdoptableByAnnotation] == adopter,
		terminating: u.GetDeletionTimestamp() != nil, finalizers: u.GetFinalizers(),
	}
	t.version, _ = strconv.ParseInt(u.GetResourceVersion(), 10, 64)
	t.value, _, _ = unstructured.NestedString(u.Object, "spec", "value")
	value := t.value
	if extra, _, _ := unstructured.NestedString(u.Object, "spec", "extra"); extra != "" {
		t.value += "." + extra
	}
	if t.keep {
		t.value += "+keep"
	}
	if want := sideOf(value); want != "" && unions[u.GetKind()] {
		for _, side := range sides {
			if _, has, _ := unstructured.NestedString(u.Object, "spec", side); has != (side == want) {
				t.value += "/torn"
			}
		}
	}
	t.fixed, _, _ = unstructured.NestedString(u.Object, "spec", "fixed")
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	shown, _, _ := unstructured.NestedString(u.Object, "status", "value")
	t.healthy = u.GetKind() == "Config" || observed == u.GetGeneration() && shown == value
	return t
}

func (o *object) controller() types.UID {
	for _, ref := range o.owners {
		if ptr.Deref(ref.Controller, false) {
			return ref.UID
		}
	}
	return ""
}

func (o *object) String() string {
	if o == nil {
		return "absent"
	}
	return fmt.Sprintf("%s@%d %s/%s by %q label=%t healthy=%t terminating=%t %v",
		o.uid, o.version, o.value, o.release, o.controller(), o.labelled, o.healthy, o.terminating, o.finalizers)
}

// moment is the state of an object from a resource version on.
type moment struct {
	version int64
	obs     *object
}

// set is a revision as the API server stores it.
type set struct {
	name              string
	uid               types.UID
	template          *template
	release           string
	number            int64
	waiting           bool  // for its activation
	waited            bool  // and was never claimed since
	first             bool  // no set was there when it was made
	since             proof // what the watches had shown when it was made
	made              int64 // the version when it was made
	proven            int64 // the version at which the state of the watches was proven
	claimed           bool
	opened            int // phases that can be written, by the record
	begun             int // phases that had started, by the status
	ready             int // phases that were complete, by the status
	succeeded         bool
	proved            bool // it has succeeded once, and has objects since: it stays until a newer one has succeeded
	archived          bool // the condition
	deleting          bool
	lifecycleArchived bool
}

// template is the content of a revision.
type template struct {
	name    string
	remote  bool
	account string
	phases  [][]wanted
}

// ahead returns how many phases are open from the claim on: the first one, and each phase behind
// phases without probed objects.
func (t *template) ahead() int {
	for i, ph := range t.phases {
		if slices.ContainsFunc(ph, func(w wanted) bool { return probed(w.key) }) {
			return i + 1
		}
	}
	return len(t.phases)
}

// wanted is one object of a template.
type wanted struct {
	key       objects.Key
	value     string
	keep      bool
	collision corev1alpha1.CollisionProtection
}

// fixed returns the part of a Job that cannot be changed: it is annotated on-immutable: Recreate.
func (w *wanted) fixed() string {
	if w.key.Kind != "Job" {
		return ""
	}
	return w.value[:1]
}

// manifest returns the object as the template has it.
func (w *wanted) manifest() corev1alpha1.ObjectSetObject {
	value, _ := strings.CutSuffix(w.value, "+keep")
	value, extra, _ := strings.Cut(value, ".")
	spec, annotations := map[string]any{"value": value}, map[string]any{}
	if extra != "" {
		spec["extra"] = extra
	}
	if side := sideOf(value); unions[w.key.Kind] && side != "" {
		spec[side] = "set"
	}
	if fixed := w.fixed(); fixed != "" {
		spec["fixed"] = fixed
		annotations[corev1alpha1.OnImmutableAnnotation] = corev1alpha1.OnImmutableRecreate
	}
	if w.keep {
		annotations[corev1alpha1.DeletionPolicyAnnotation] = corev1alpha1.DeletionPolicyKeep
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": w.key.Kind, "metadata": map[string]any{"name": w.key.Name, "annotations": annotations}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: raw}, CollisionProtection: w.collision}
}

// sides are fields that exclude each other on objects of the kinds in unions: a template with
// another value exchanges one for the other.
var (
	sides  = []string{"left", "right"}
	unions = map[string]bool{"App": true, "Config": true}
)

// sideOf returns the side of a template with a value; empty if no template has the value.
func sideOf(value string) string {
	return map[string]string{"1": "left", "2": "right"}[value]
}

// visible reports whether a live value looks like a template's: a field that the template does not
// have is not visible.
func visible(template, live string) bool {
	template, keep := strings.CutSuffix(template, "+keep")
	live, kept := strings.CutSuffix(live, "+keep")
	return (live == template || strings.HasPrefix(live, template+".")) && (kept || !keep)
}

func (t *template) Find(key objects.Key) (*wanted, int) {
	for ph := range t.phases {
		for i := range t.phases[ph] {
			if t.phases[ph][i].key == key {
				return &t.phases[ph][i], ph
			}
		}
	}
	return nil, 0
}

func (t *template) String() string {
	var b strings.Builder
	b.WriteString(t.name + " as " + strconv.Quote(t.account))
	for _, ph := range t.phases {
		b.WriteString(" [")
		for i, w := range ph {
			if i > 0 {
				b.WriteString(" ")
			}
			fmt.Fprintf(&b, "%s/%s=%s", w.key.Kind, w.key.Name, w.value)
		}
		b.WriteString("]")
	}
	return b.String()
}

// spec returns the template of a deployment. The names of phases distinguish templates.
func (t *template) spec() corev1alpha1.ObjectSetTemplateSpec {
	spec := corev1alpha1.ObjectSetTemplateSpec{ServiceAccountName: t.account, AvailabilityProbes: []corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: group, Kind: "App"}},
		Probes:   []corev1alpha1.Probe{{Condition: &corev1alpha1.ProbeConditionSpec{Type: "Available", Status: "True"}}},
	}, {
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Group: group, Kind: "Job"}},
		Probes:   []corev1alpha1.Probe{{FieldsEqual: &corev1alpha1.ProbeFieldsEqualSpec{FieldA: ".spec.value", FieldB: ".status.value"}}},
	}}}
	if t.remote {
		spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "target"}}
	}
	for i, ph := range t.phases {
		phase := corev1alpha1.ObjectSetTemplatePhase{Name: fmt.Sprintf("%s-%d", t.name, i+1)}
		for _, w := range ph {
			phase.Objects = append(phase.Objects, w.manifest())
		}
		spec.Phases = append(spec.Phases, phase)
	}
	return spec
}

const (
	group    = "example.com"
	rivalUID = types.UID("rival")
	// adopter is the name of the deployment in annotations of objects that it is allowed to adopt.
	adopter = "n/app"
)

// App and Job are probed, Config is not.
var kinds = []schema.GroupKind{{Group: group, Kind: "App"}, {Group: group, Kind: "Config"}, {Group: group, Kind: "Job"}}

// universe are all objects that templates are made of.
var universe = []objects.Key{
	key("Config", "a"), key("App", "b"), key("Job", "c"), key("Config", "d"), key("App", "e"), key("Config", "f"),
}

var deploymentKeyOf = objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectDeployment", Namespace: "n", Name: "app"}

func key(kind, name string) objects.Key {
	return objects.Key{Group: group, Kind: kind, Namespace: "n", Name: name}
}

// probed reports whether probes select the kind of the object.
func probed(key objects.Key) bool { return key.Kind == "App" || key.Kind == "Job" }

var namespaces = inmemory.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), ClusterScoped: true}

// homeKinds returns the kinds of the engine's cluster.
func homeKinds() []inmemory.Kind {
	return []inmemory.Kind{
		namespaces,
		{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ObjectDeployment"), Custom: true, Unmanaged: true},
		{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ObjectSet"), Custom: true, Unmanaged: true},
		{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ClusterObjectDeployment"), Custom: true, Unmanaged: true, ClusterScoped: true},
		{GroupVersionKind: corev1alpha1.GroupVersion.WithKind("ClusterObjectSet"), Custom: true, Unmanaged: true, ClusterScoped: true},
	}
}

// templateKinds returns the kinds of the objects in templates. Objects of built-in kinds are
// created by a POST.
func templateKinds() (all []inmemory.Kind) {
	for _, gk := range kinds {
		kind := inmemory.Kind{GroupVersionKind: gk.WithVersion("v1"), Custom: gk.Kind == "Job"}
		if unions[gk.Kind] {
			kind.Union = sides
		}
		all = append(all, kind)
	}
	return all
}

// newServer makes the cluster with its deployment.
func (s *simulation) newServer() {
	s.server = inmemory.NewServer(apinames.Default, s.clock, append(homeKinds(), templateKinds()...)...)
	s.own = s.server
	if s.remote {
		s.own, s.server = inmemory.NewServer(apinames.Default, s.clock, homeKinds()...), inmemory.NewServer(apinames.Default, s.clock, append(templateKinds(), namespaces)...)
		s.own.Stored = s.stored
	}
	s.server.Admit, s.server.Stored = s.admit, s.stored
	dep := &corev1alpha1.ObjectDeployment{}
	dep.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("ObjectDeployment"))
	dep.Namespace, dep.Name = "n", "app"
	dep.Labels = map[string]string{corev1alpha1.PackageInstanceLabel: "1"}
	dep.Spec.RevisionHistoryLimit = ptr.To[int32](2)
	if s.retain {
		dep.Spec.ArchivalPolicy = corev1alpha1.ArchivalPolicyRelease
	}
	dep.Spec.Template.Spec = s.newTemplate().spec()
	if s.manual {
		dep.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual
	}
	if s.rollback {
		dep.Spec.OnDeadline, dep.Spec.ProgressDeadlineSeconds = corev1alpha1.DeadlineRollback, ptr.To[int32](60)
	}
	made, err := s.own.Create(deploymentKeyOf, encode(dep), "")
	if err != nil {
		panic(err)
	}
	s.owner = made.GetUID()
	s.owners[s.owner] = true
}

func encode(obj any) *unstructured.Unstructured {
	raw, err := json.Marshal(obj)
	u := &unstructured.Unstructured{}
	if err == nil {
		err = utiljson.Unmarshal(raw, &u.Object)
	}
	if err != nil {
		panic(err)
	}
	return u
}

func decode[T any](u *unstructured.Unstructured, into *T) *T {
	var fresh T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &fresh); err != nil {
		panic(err)
	}
	*into = fresh
	return into
}

// deployment returns the owner of all objects, nil once it is deleted.
func (s *simulation) deployment() *corev1alpha1.ObjectDeployment {
	if u := s.own.Get(deploymentKeyOf); u != nil {
		return decode(u, &corev1alpha1.ObjectDeployment{})
	}
	return nil
}

func (s *simulation) editDeployment(change func(*corev1alpha1.ObjectDeployment)) {
	_, err := s.own.Edit(deploymentKeyOf, "", func(u *unstructured.Unstructured) {
		dep := decode(u, &corev1alpha1.ObjectDeployment{})
		change(dep)
		u.Object = encode(dep).Object
	})
	if err != nil {
		panic(err)
	}
}

func (s *simulation) templateOf(spec *corev1alpha1.ObjectSetTemplateSpec) *template {
	name, _, _ := strings.Cut(spec.Phases[0].Name, "-")
	return s.templates[slices.IndexFunc(s.templates, func(t *template) bool { return t.name == name })]
}

// admit refuses writes of the engine as webhooks and validation do.
func (s *simulation) admit(key objects.Key, before, after *unstructured.Unstructured) error {
	was, is := objectOf(before), objectOf(after)
	switch {
	case !s.engineWrites || key.Group != group:
	case s.denied[key]:
		return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: key.Kind}, key.Name,
			fmt.Errorf(`admission webhook "policy.example.com" denied the request`))
	case was != nil && s.ours(was) && was.fixed != "" && was.fixed != is.fixed:
		return apierrors.NewInvalid(key.GroupKind(), key.Name, field.ErrorList{field.Invalid(field.NewPath("spec", "fixed"), is.fixed, "field is immutable")})
	}
	return nil
}

// stored notes each change.
func (s *simulation) stored(e inmemory.Event) {
	switch {
	case e.Key.Group == group:
		s.past[e.Key] = append(s.past[e.Key], moment{s.when(e.Version), objectOf(e.After)})
	case e.Key.Kind == "ObjectSet" && e.After == nil:
		s.sets = slices.DeleteFunc(s.sets, func(o *set) bool { return o.uid == e.Before.GetUID() })
	case e.Key.Kind == "ObjectSet":
		if set := decode(e.After, &corev1alpha1.ObjectSet{}); objectsets.DeploymentOf(set) == s.owner {
			s.noteSet(set) // else one from before a restoration
		}
	}
}

// noteSet updates the known state of a set, and checks its new records.
func (s *simulation) noteSet(obj *corev1alpha1.ObjectSet) {
	is := s.setOf(obj)
	s.renumber(is, obj)
	conds := obj.Status.Conditions
	is.deleting = obj.DeletionTimestamp != nil
	if decided := obj.Spec.LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived; decided != is.lifecycleArchived {
		if is.lifecycleArchived = decided; decided && !is.archived && !s.late {
			s.checkOvertaken(is)
		}
	}
	claim := meta.FindStatusCondition(conds, corev1alpha1.ConditionClaimed)
	is.claimed = is.claimed || claim != nil && claim.Status == "True" || claim == nil && obj.Annotations[corev1alpha1.ClaimedAnnotation] == "true"
	is.waiting = objectsets.Waiting(obj)
	is.waited = !is.claimed && (is.waited || objectsets.Waits(obj))
	if is.claimed {
		is.begun = max(is.begun, min(1, len(is.template.phases)))
		is.opened = max(is.opened, is.begun)
		if is.first {
			is.opened = max(is.opened, is.template.ahead())
		}
	}
	for n, ph := range obj.Status.Phases {
		switch {
		case ph.State.Opened():
			is.begun = max(is.begun, n+1)
		case ph.State != corev1alpha1.PhaseStateWaiting:
			// Activated again before it is archived, a set need not create its objects again while a
			// newer one rolls out.
			is.ready = min(is.ready, n)
		}
	}
	if is.begun > is.opened {
		if !s.late {
			s.checkGate(is, is.opened, is.begun-1, s.watchProof(is, is.begun-1))
		}
		is.opened = is.begun
		is.ready = is.begun - 1
	}
	if is.succeeded = meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionSucceeded); is.succeeded {
		is.ready = len(is.template.phases)
	}
	if archived := meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionArchived); archived && !is.archived {
		if !s.late {
			s.checkArchived(is)
		}
		is.archived = true
	}
	is.proved = !is.archived && (is.proved || is.succeeded)
}

// renumber follows the number of a set. A set with a status starts over with the status of the new
// number.
func (s *simulation) renumber(is *set, obj *corev1alpha1.ObjectSet) {
	if objectsets.Renumbered(obj) || obj.Spec.Revision == is.number {
		return
	}
	is.number = obj.Spec.Revision
	slices.SortStableFunc(s.sets, func(a, b *set) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name)) })
	written, claimed := !is.archived && is.opened > 0, is.claimed
	is.claimed, is.opened, is.begun, is.ready, is.succeeded, is.archived = false, 0, 0, 0, false, false
	is.first = len(obj.Spec.Previous) == 0 && obj.Spec.Revision <= 1 // as a restored one is, which was activated again since
	if written {
		is.claimed = claimed
		is.opened, is.begun = min(1, len(is.template.phases)), min(1, len(is.template.phases))
	}
	is.proved = is.proved && !is.lifecycleArchived // a set that is archived nevertheless was overtaken under its former number
	is.since, is.made, is.proven = s.engine.known, s.when(s.server.Version()), 0
}

// setOf returns the known state of a set. Those with equal numbers are in the order of
// their names.
func (s *simulation) setOf(obj *corev1alpha1.ObjectSet) *set {
	for _, is := range s.sets {
		if is.uid == obj.UID {
			return is
		}
	}
	is := s.ever[obj.UID]
	if is == nil {
		is = &set{
			name: obj.Name, uid: obj.UID, number: obj.Spec.Revision, first: len(obj.Spec.Previous) == 0, since: s.engine.known, made: s.when(s.server.Version()),
			template: s.templateOf(&obj.Spec.ObjectSetTemplateSpec), release: obj.Labels[corev1alpha1.PackageInstanceLabel],
		}
		s.ever[obj.UID] = is
	}
	s.sets = append(s.sets, is)
	slices.SortStableFunc(s.sets, func(a, b *set) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name)) })
	return is
}

func (s *simulation) get(key objects.Key) *object { return objectOf(s.server.Get(key)) }

// at returns the state of an object at a resource version.
func (s *simulation) at(key objects.Key, version int64) *object {
	var obs *object
	for _, m := range s.past[key] {
		if m.version <= version {
			obs = m.obs
		}
	}
	return obs
}

// was reports whether an object had a state that ok accepts, at a version or after it.
func (s *simulation) was(key objects.Key, version int64, ok func(*object) bool) bool {
	if ok(s.at(key, version)) {
		return true
	}
	return slices.ContainsFunc(s.past[key], func(m moment) bool { return m.version > version && ok(m.obs) })
}

// keys returns the keys of all objects that are rolled out, in order.
func (s *simulation) keys() []objects.Key {
	return slices.DeleteFunc(s.server.Keys(), func(k objects.Key) bool { return k.Group != group })
}

// controlled returns the keys of all objects that the deployment controls, or did before a
// restoration.
func (s *simulation) controlled() []objects.Key {
	return slices.DeleteFunc(s.keys(), func(k objects.Key) bool { return !s.ours(s.get(k)) })
}

// newest returns the newest set that is not removed, or nil.
func (s *simulation) newest() *set {
	for _, one := range slices.Backward(s.sets) {
		if !one.archived && !one.deleting && !one.lifecycleArchived && !one.waiting {
			return one
		}
	}
	return nil
}
