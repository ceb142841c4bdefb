package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// TestFailuresOfSensitiveRevisionsAreReduced: statuses contain a server's words about an object,
// unless a revision of the owner has sensitive values (invariant 8).
func TestFailuresOfSensitiveRevisionsAreReduced(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	key := objects.Key{Kind: "Secret", Namespace: "shop", Name: "a"}
	refused := &apply.Error{Verb: "apply", Key: key, Err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("data").Key("k"), value, "is immutable")})}
	for name, tc := range map[string]struct {
		reason    string
		sensitive bool
		err       error
		want      string
		quoted    bool
	}{
		"ordinary":        {"the text helps", false, refused, "is immutable", true},
		"sensitive":       {"reason and field are left", true, refused, "apply Secret shop/a: Invalid: data[k]", false},
		"immutable":       {"the remedy follows from it", true, &ImmutableError{refused}, "Invalid: data[k] (immutable in an object that exists)", false},
		"network":         {"a proxy can quote the request", true, errors.New("502: " + value), "could not be reached", false},
		"schema":          {"our own words quote no values", true, &schemas.InvalidError{Fields: []schemas.FieldError{{Path: ".data", Problem: "expected map"}}}, ".data: expected map", false},
		"element":         {"a port can be one", true, &schemas.InvalidError{Fields: []schemas.FieldError{{Path: `.spec.ports[name="hunter2",port=1]`, Problem: "expected map"}}}, ".spec.ports[*]: expected map", false},
		"panic":           {"its error quotes no values", true, panics.Of(value, "Create of Secret shop/a"), "Create of Secret shop/a failed by a defect", false},
		"schema not read": {"it is about the schema", true, &schemas.UnavailableError{Err: errors.New("503")}, "503", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}, UID: "owner"})
			r.Put(&Revision{Revision: phases.Revision{UID: "old"}, Sensitive: tc.sensitive})
			r.Put(&Revision{Revision: phases.Revision{UID: types.UID("new")}})
			x := &run{Engine: &Engine{Cluster: &cluster.Connection{}}, rollout: r}
			x.fail(phases.Step{Key: key}, fmt.Errorf("phase one: %w", tc.err), false)
			got := r.applied.At(key).Failure.Message
			if !strings.Contains(got, tc.want) || strings.Contains(got, value) != tc.quoted {
				t.Errorf("%s: %q, want %q in it", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPathsOfExposedObjects: an object with the annotation that it can hold sensitive values can
// have them as keys, which are part of paths (invariant 8).
func TestPathsOfExposedObjects(t *testing.T) {
	t.Parallel()
	const value = "hunter2hunter2"
	key := objects.Key{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "a"}
	raw := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, corev1alpha1.ExposeSecretValuesAnnotation)
	r := New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}, UID: "owner"})
	r.Put(&Revision{Sensitive: true, Revision: phases.Revision{UID: "old", Phases: []phases.Phase{{Objects: []*objects.Desired{{Key: key, Raw: raw}}}}}})
	for _, err := range []error{
		&schemas.InvalidError{Fields: []schemas.FieldError{{Path: ".spec." + value, Problem: schemas.Undeclared, Suggestion: value}}},
		&apply.Error{Verb: "apply", Key: key, Err: apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "a",
			field.ErrorList{field.Invalid(field.NewPath("spec", value), "x", "is wrong"), field.Invalid(field.NewPath("spec").Key(value), "x", "is wrong")})},
	} {
		got, sensitive := r.Reduced(key, err)
		if !sensitive || got == "" || strings.Contains(got, value) {
			t.Errorf("%T becomes %q", err, got)
		}
	}
	other := key
	other.Name = "b"
	if got, _ := r.Reduced(other, &schemas.InvalidError{Fields: []schemas.FieldError{{Path: ".spec.port", Problem: schemas.Undeclared, Suggestion: "ports"}}}); got != `.spec.port: field not declared in schema, did you mean "ports"?` {
		t.Errorf("of an object without such values: %q", got)
	}
}

// TestPanicIsTheFailureOfOneObject: no caller of a pool's goroutine recovers, and the
// process would end, again after each restart.
func TestPanicIsTheFailureOfOneObject(t *testing.T) {
	t.Parallel()
	live := &objects.Observed{UID: "uid", ResourceVersion: "1"}
	now := time.Now()
	for name, do := range map[string]func(*testing.T, *Engine, *Rollout, phases.Step){
		"step": func(t *testing.T, e *Engine, r *Rollout, s phases.Step) {
			if err := e.perform(t.Context(), r, []phases.Step{s}, false); err != nil {
				t.Errorf("the others are given up as well: %v", err)
			}
		},
		"dry run": func(t *testing.T, e *Engine, r *Rollout, s phases.Step) {
			if ok, err := e.enter(t.Context(), r, &phases.Entry{Steps: []phases.Step{s}}); ok || err != nil {
				t.Errorf("the phase is entered: %t, %v", ok, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStep(t, http.NotFoundHandler(), phases.Change, live)
			s.run.Pool = NewPool(1, 1) // and no cache, over which each step panics
			for range 2 {
				do(t, s.run.Engine, s.run.rollout, s.Step)
			}
			f := s.run.rollout.applied.At(s.Key).Failure
			if f == nil || f.Attempts != 2 || !strings.HasPrefix(f.Message, "Change of ConfigMap n/object failed by a defect") || !f.Until.After(now) {
				t.Errorf("the failure is %+v", f)
			}
		})
	}
}

// TestPanicOverAnAnswer: the write took effect. So the object is not known any more
// to have its former content.
func TestPanicOverAnAnswer(t *testing.T) {
	t.Parallel()
	answer := strings.Replace(shown, `"labels"`, `"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}],"labels"`, 1)
	s := newStep(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }), phases.Change,
		&objects.Observed{UID: "uid-read", ResourceVersion: "76", Wrote: true})
	s.run.Tracker.Served = func(schema.GroupKind, string) bool { panic("a defect") }
	rec := s.run.rollout.applied.At(s.Key)
	rec.Content, rec.UID = objects.Digest{2}, s.Live.UID
	func() {
		defer s.run.catch(t.Context(), s.Step)
		t.Errorf("no panic: %v", s.do(t.Context()))
	}()
	if rec.Failure == nil || rec.Content != differs {
		t.Errorf("the object counts as one of content %x, failed by %+v", rec.Content, rec.Failure)
	}
}

// TestImmutable: a refused change concerns an immutable field if a new object would be accepted. A
// webhook that stops refusing both in between proves nothing, and its object must not be recreated.
func TestImmutable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		create, again error
		want          bool
	}{
		"a field":                         {apierrors.NewAlreadyExists(schema.GroupResource{}, "object"), apierrors.NewInvalid(schema.GroupKind{}, "object", nil), true},
		"refused by a webhook until then": {apierrors.NewAlreadyExists(schema.GroupResource{}, "object"), nil, false},
		"changed meanwhile":               {apierrors.NewAlreadyExists(schema.GroupResource{}, "object"), apierrors.NewConflict(schema.GroupResource{}, "object", nil), false},
		"invalid in a new object, too":    {apierrors.NewInvalid(schema.GroupKind{}, "object", nil), apierrors.NewInvalid(schema.GroupKind{}, "object", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStep(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				answer := tc.again
				if req.Method == http.MethodPost {
					answer = tc.create
				}
				if req.URL.Query().Get("dryRun") == "" {
					t.Errorf("%s without a dry run", req.Method)
				}
				var status apierrors.APIStatus
				if !errors.As(answer, &status) {
					_, _ = io.WriteString(w, shown)
					return
				}
				body, _ := json.Marshal(status.Status())
				w.WriteHeader(int(status.Status().Code))
				_, _ = w.Write(body)
			}), phases.Change, &objects.Observed{UID: "uid-read", ResourceVersion: "77"})
			template, err := s.content(t.Context())
			require.NoError(t, err)
			refusal := errors.New("refused")
			err = s.immutable(t.Context(), template, refusal)
			var immutable *ImmutableError
			require.Equal(t, tc.want, errors.As(err, &immutable))
			require.Equal(t, true, errors.Is(err, refusal))
		})
	}
}

// TestLostRelabel: labels that the engine has written itself, by a write whose answer was lost, are
// not corrected as another manager's change. The object is verified.
func TestLostRelabel(t *testing.T) {
	t.Parallel()
	labelled := func(instance string) string {
		return strings.Replace(shown, `"package-operator.run/cache":"True"`, `"app.kubernetes.io/instance":"`+instance+`"`, 1)
	}
	s := newStep(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		instance := "written"
		if req.Method == http.MethodPatch {
			instance = "wanted"
		}
		_, _ = io.WriteString(w, labelled(instance))
	}), phases.Verify, &objects.Observed{UID: "uid-read", ResourceVersion: "77", ProjectedBy: objects.Digest{2}})
	s.Metadata.Labels, s.Labels = map[string]string{"app.kubernetes.io/instance": "wanted"}, objects.Digest{1}
	rec := s.run.rollout.applied.At(s.Key)
	rec.Content, rec.UID, rec.Template = s.Desired.Content, s.Live.UID, tracking.TemplateID(s.Desired, s.Labels, s.run.rollout.Owner)
	require.NoError(t, s.verify(t.Context()))
	require.Equal(t, differs, rec.Content)
}

// TestReported: the right one of two refusals is reported, and neither quotes the object.
func TestReported(t *testing.T) {
	t.Parallel()
	invalid := func(fields ...string) error {
		var causes field.ErrorList
		for _, name := range fields {
			causes = append(causes, field.Invalid(field.NewPath(name), "hunter2", "is wrong"))
		}
		return &apply.Error{Verb: "apply", Err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", causes)}
	}
	applied := invalid("type")
	for name, tc := range map[string]struct {
		reason  string
		implied error
		applies bool
	}{
		"same cause":  {"the template is wrong", invalid("selector", "type"), true},
		"other cause": {"the cause of the failed apply was removed, and this problem remains", invalid("selector"), false},
		"no object":   {"the object cannot be decoded, and the refusal quotes it", &apply.Error{Verb: "dry-run patch", Err: apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), "hunter2", "no base64")})}, true},
		"lost":        {"the request does not mention the object", apierrors.NewServiceUnavailable("starting"), true},
	} {
		if got := reported(applied, tc.implied); errors.Is(got, applied) != tc.applies {
			t.Errorf("%s: %s: reported %v", name, tc.reason, got)
		}
	}
}

// judged returns a revision whose ConfigMaps have to have the value "true".
func judged(t *testing.T) *Revision {
	t.Helper()
	set, err := probes.Compile([]corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
		Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: "self.data.ready == 'true'", Message: "not ready"}}},
	}})
	require.NoError(t, err)
	return &Revision{Probes: set, cachedResults: map[objects.Key]cachedResult{}, fieldGenerations: map[schema.GroupKind]uint32{}}
}

func recordOf(ready bool) *objects.Observed {
	return &objects.Observed{Watched: true, Trimmed: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","data":{"ready":"%t"}}`, ready)}
}

// TestTurn: a pass stops evaluating when its time for probes is up, and the next one
// continues.
func TestTurn(t *testing.T) {
	t.Parallel()
	const each, all = 30 * time.Millisecond, 10
	rev, r := judged(t), New(objects.Owner{Names: apinames.Default, UID: "uid"})
	var clock time.Time
	evaluations := 0
	now := func() time.Time { // is asked before and after each evaluation
		clock = clock.Add(each / 2)
		evaluations++
		return clock
	}
	records := map[objects.Key]*objects.Observed{}
	for i := range all {
		records[keyNamed(fmt.Sprint(i))] = recordOf(true)
	}
	pass := func(most time.Duration) (known int) {
		r.Start(now, most)
		for i := range all {
			key := keyNamed(fmt.Sprint(i))
			switch result := rev.probe(key, records[key], &r.budget); {
			case result.Status == probes.True:
				known++
			case !result.Unseen || !r.ProbeBudgetSpent():
				t.Errorf("object %d is %+v, and the turn is over: %t", i, result, r.ProbeBudgetSpent())
			}
		}
		return known
	}
	for i, want := range []int{4, 8, 10, 10} {
		require.Equal(t, want, pass(4*each/2), fmt.Sprintf("after pass %d", i+1))
	}
	if r.ProbeBudgetSpent() || evaluations != 2*all {
		t.Errorf("judging %d objects took %d looks at the clock; over: %t", all, evaluations, r.ProbeBudgetSpent())
	}
	for key := range records {
		records[key] = recordOf(true) // a list that shows the same
	}
	if pass(0) != all {
		t.Error("what looks the same is judged again")
	}
	records[keyNamed("3")] = recordOf(false)
	if got := rev.probe(keyNamed("3"), records[keyNamed("3")], &probeBudget{}); got.Status != probes.False {
		t.Errorf("the changed objects are %+v", got)
	}
}

// TestProbesCost: the total cost of judging all objects is limited, and freed when an
// object gets cheaper.
func TestProbesCost(t *testing.T) {
	t.Parallel()
	rev := judged(t)
	first, second := keyNamed("first"), keyNamed("second")
	if got := rev.probe(first, recordOf(true), &probeBudget{}); got.Status != probes.True || rev.cost == 0 {
		t.Fatalf("%+v at a cost of %d", got, rev.cost)
	}
	expensive := rev.cachedResults[first]
	ordinary := expensive.cost
	expensive.cost = limits.ProbesCost
	rev.cachedResults[first], rev.cost = expensive, limits.ProbesCost
	for range 2 {
		got := rev.probe(second, recordOf(true), &probeBudget{})
		if got.Status != probes.Unknown || got.Unseen || !strings.Contains(got.Message(), fmt.Sprintf("cost more than %d", limits.ProbesCost)) {
			t.Errorf("an object beyond the limit is %+v", got)
		}
	}
	if got := rev.probe(first, recordOf(false), &probeBudget{}); got.Status != probes.False || rev.cost != ordinary {
		t.Errorf("one within it is %+v, and all cost %d, want %d", got, rev.cost, ordinary)
	}
	if got := rev.probe(second, recordOf(true), &probeBudget{}); got.Status != probes.True || rev.cost != 2*ordinary {
		t.Errorf("with room for it the other is %+v, and all cost %d, want %d", got, rev.cost, 2*ordinary)
	}
}

// What a revision exposes of Secrets in an object, no message of any revision quotes.
func TestExposedValuesAreNotQuoted(t *testing.T) {
	t.Parallel()
	const password = "correct-horse"
	set, err := probes.Compile([]corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
		Probes:   []corev1alpha1.Probe{{FieldsEqual: &corev1alpha1.ProbeFieldsEqualSpec{FieldA: ".data.v", FieldB: ".kind"}}},
	}})
	require.NoError(t, err)
	key := keyNamed("app")
	revision := func(uid, annotations string) *Revision {
		rev := NewRevision()
		rev.UID, rev.Probes = types.UID(uid), set
		rev.Phases = []phases.Phase{{Objects: []*objects.Desired{{Key: key, Raw: []byte(`{"metadata":{"annotations":{` + annotations + `}}}`)}}}}
		return rev
	}
	obs := &objects.Observed{Watched: true, Trimmed: []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"v":"` + password + `"}}`)}
	const exposed = `"` + corev1alpha1.ExposeSecretValuesAnnotation + `":"true"`
	for name, test := range map[string]struct {
		former, latest string
		quotes         bool
	}{"plain": {"", "", true}, "exposed": {"", exposed, false}, "exposed by the former revision": {exposed, "", false}} {
		r := New(objects.Owner{Names: apinames.Default, UID: "uid"})
		r.Put(revision("former", test.former))
		latest := revision("latest", test.latest)
		r.Put(latest)
		result := latest.probe(key, obs, &probeBudget{})
		if text := result.Message(); result.Status != probes.False || strings.Contains(text, password) != test.quotes {
			t.Errorf("%s: the result is %v: %s", name, result.Status, text)
		}
	}
}
