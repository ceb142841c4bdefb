package statuswriter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// large draws a status as large as an owner can make it.
func large(t *rapid.T) *corev1alpha1.ObjectDeploymentStatus {
	status := &corev1alpha1.ObjectDeploymentStatus{}
	text := func(label string, most int) string {
		return strings.Repeat(rapid.SampledFrom([]string{"a", "\"", "<", "\n", "ü"}).Draw(t, label), rapid.IntRange(0, most).Draw(t, label+" bytes"))
	}
	for i := range rapid.IntRange(0, 60).Draw(t, "conditions") {
		typ := fmt.Sprintf("Own%d", i)
		if i > 8 {
			typ = fmt.Sprintf("example.com/Mapped%d", i)
		}
		conditions.Set(&status.Conditions, 1, typ, true, conditions.Reason(text("reason", 1024)), text("message", 5000))
	}
	for range rapid.IntRange(0, limits.BlockingObjects).Draw(t, "blocking") {
		status.Blocking = append(status.Blocking, corev1alpha1.BlockingObject{
			Kind: "ConfigMap", Name: strings.Repeat("n", 253), Message: conditions.Message(text("blocks", 5000)),
		})
	}
	for range rapid.IntRange(0, 200).Draw(t, "controlled") {
		status.ControllerOf = append(status.ControllerOf, corev1alpha1.ControlledObjectReference{Kind: "ObjectSet", Name: strings.Repeat("n", 63)})
	}
	for range rapid.IntRange(0, limits.JobRecords).Draw(t, "jobs") {
		status.Jobs = append(status.Jobs, corev1alpha1.JobRecord{
			Group: "batch", Kind: "Job", Namespace: strings.Repeat("n", 63), Name: strings.Repeat("n", 63), ContentHash: strings.Repeat("0", 32), Result: "Succeeded",
		})
	}
	for i := range rapid.IntRange(0, limits.PackagePhases).Draw(t, "phases") {
		status.Phases = append(status.Phases, corev1alpha1.PhaseStatus{Name: fmt.Sprintf("phase-%d", i), State: corev1alpha1.PhaseStateTearingDown, Ready: 1000, Total: 1000})
	}
	return status
}

// timeless: a second can start between two copies of a condition.
var timeless = cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")

// TestFit: a status stays within its limit, names the parts that it leaves out, keeps its records,
// and is stable when it is computed again from itself.
func TestFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole := large(t)
		written := func(on *corev1alpha1.ObjectDeploymentStatus) *corev1alpha1.ObjectDeploymentStatus {
			status := on.DeepCopy()
			for _, c := range whole.Conditions {
				conditions.Copy(&status.Conditions, 1, c)
			}
			status.Blocking, status.ControllerOf = whole.DeepCopy().Blocking, whole.DeepCopy().ControllerOf
			status.Phases, status.Jobs = whole.Phases, whole.Jobs
			statuswriter.Fit(status, 1, nil)
			return status
		}
		got := written(&corev1alpha1.ObjectDeploymentStatus{})
		text, err := json.Marshal(got)
		if err != nil || len(text) > limits.StatusBytes {
			t.Errorf("the status has %d bytes: %v", len(text), err)
		}
		if len(got.Phases) != len(whole.Phases) || len(got.Jobs) != len(whole.Jobs) {
			t.Error("a part of a record is left out")
		}
		for i := range min(9, len(whole.Conditions)) {
			if meta.FindStatusCondition(got.Conditions, whole.Conditions[i].Type) == nil {
				t.Errorf("%s is left out", whole.Conditions[i].Type)
			}
		}
		said := meta.FindStatusCondition(got.Conditions, corev1alpha1.ConditionTruncated)
		rest := got.DeepCopy()
		meta.RemoveStatusCondition(&rest.Conditions, corev1alpha1.ConditionTruncated)
		if same := cmp.Equal(rest.Conditions, whole.Conditions, timeless) && cmp.Equal(rest.Blocking, whole.Blocking) && cmp.Equal(rest.ControllerOf, whole.ControllerOf); same == (said != nil) {
			t.Errorf("it is whole: %t, and it has %+v", same, said)
		}
		require.Equal(t, got, written(got), "made again it differs")
	})
}

// TestFitRepeatsWhatIsLeftOutBelow: Truncated is mirrored from the status below, and
// removed with it.
func TestFitRepeatsWhatIsLeftOutBelow(t *testing.T) {
	t.Parallel()
	set, pkg := &corev1alpha1.ObjectSetStatus{}, &corev1alpha1.PackageStatus{}
	statuswriter.Fit(set, 1, nil, "7 of 57 mapped conditions")
	statuswriter.Fit(pkg, 3, set.Conditions)
	c := meta.FindStatusCondition(pkg.Conditions, corev1alpha1.ConditionTruncated)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != 3 || c.Message != "Left out: 7 of 57 mapped conditions" {
		t.Errorf("it says %+v", c)
	}
	if statuswriter.Fit(pkg, 3, nil); len(pkg.Conditions) > 0 {
		t.Errorf("it still has %+v", pkg.Conditions)
	}
}

// TestFitDependencies: if dependencies alone make a status too large, they are kept and their
// messages are shortened.
func TestFitDependencies(t *testing.T) {
	t.Parallel()
	status := &corev1alpha1.PackageStatus{Resolved: &corev1alpha1.ResolvedPackage{Provides: []corev1alpha1.ProvidedAPI{{APIVersion: "example.com/v1", Kind: "Shop"}}}}
	for i := range limits.Dependencies {
		d := corev1alpha1.DependencyStatus{Dependency: corev1alpha1.Dependency{Name: fmt.Sprint("d", i)}}
		conditions.Set(&d.Conditions, 1, "Satisfied", false, "R", strings.Repeat("m", 1000))
		status.Dependencies = append(status.Dependencies, d)
	}
	statuswriter.Fit(status, 1, nil)
	text, err := json.Marshal(status)
	if err != nil || len(text) > limits.StatusBytes || len(status.Dependencies) != limits.Dependencies || meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionTruncated) == nil {
		t.Errorf("%d bytes, %d dependencies, %v: %+v", len(text), len(status.Dependencies), err, status.Conditions)
	}
}

// TestFitImages: of a status that is too large images are left out and counted, once.
func TestFitImages(t *testing.T) {
	t.Parallel()
	status := &corev1alpha1.PackageStatus{Resolved: &corev1alpha1.ResolvedPackage{}}
	for i := range limits.StatusImages {
		status.Resolved.Images = append(status.Resolved.Images, corev1alpha1.PackageImage{Image: fmt.Sprint("example.com/", i), Digest: "sha256:" + strings.Repeat("a", 64)})
	}
	statuswriter.Fit(status, 1, nil)
	if len(status.Resolved.Images) != limits.StatusImages || len(status.Conditions) > 0 {
		t.Errorf("a small status has %d images: %+v", len(status.Resolved.Images), status.Conditions)
	}
	for i := range limits.PackagePhases {
		status.Phases = append(status.Phases, corev1alpha1.PhaseStatus{Name: fmt.Sprintf("%s-%d", strings.Repeat("p", 140), i), State: "Pending"})
	}
	all := status.Resolved.DeepCopy().Images
	statuswriter.Fit(status, 1, nil)
	text, err := json.Marshal(status)
	left := len(status.Resolved.Images)
	if err != nil || len(text) > limits.StatusBytes || left == 0 || left == len(all) || left+int(status.Resolved.OmittedImages) != len(all) || !cmp.Equal(all[:left], status.Resolved.Images) {
		t.Errorf("%d bytes, %d of %d images, %d omitted, %v", len(text), left, len(all), status.Resolved.OmittedImages, err)
	}
	once := status.DeepCopy()
	statuswriter.Fit(status, 1, nil)
	require.Equal(t, once, status, "made again it differs")
}

// A timeline that has no room is left out without a word, since a condition would make a status at
// rest be written.
func TestFitWithoutTimeline(t *testing.T) {
	t.Parallel()
	status := &corev1alpha1.ObjectSetStatus{}
	for range limits.TimelinePhases {
		status.Timeline = append(status.Timeline, corev1alpha1.PhaseTimes{Name: "phase", WaitedFor: strings.Repeat("x", limits.StatusBytes/limits.TimelinePhases)})
	}
	statuswriter.Fit(status, 1, nil)
	if len(status.Timeline) > 0 || len(status.Conditions) > 0 {
		t.Errorf("%d times, conditions %v", len(status.Timeline), status.Conditions)
	}
}

// kinds are those that have a status.
func kinds() []corev1alpha1.Conditioned {
	var all []corev1alpha1.Conditioned
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		all = append(all, scope.NewPackage(), scope.NewObjectDeployment(), scope.NewObjectSet())
	}
	return all
}

// TestWrite: only the status is sent, and afterwards the caller's object equals the API server's. A
// write that is based on an older state fails.
func TestWrite(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	for _, obj := range kinds() {
		t.Run(obj.GetObjectKind().GroupVersionKind().Kind, func(t *testing.T) {
			t.Parallel()
			obj.SetName("shop")
			obj.SetUID("1")
			obj.SetLabels(map[string]string{"a": "b"})
			var sent client.Object
			server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).WithStatusSubresource(obj).Build(), interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
					sent = o.DeepCopyObject().(client.Object)
					return c.SubResource(sub).Update(ctx, o, opts...)
				},
			})
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			older := obj.DeepCopyObject().(corev1alpha1.Conditioned)
			*obj.StatusConditions() = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Idle", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
			require.NoError(t, statuswriter.Write(t.Context(), server, obj))
			if len(sent.GetLabels()) != 0 || sent.GetUID() != "1" || sent.GetResourceVersion() != older.GetResourceVersion() {
				t.Errorf("sent %+v", sent)
			}
			stored := obj.DeepCopyObject().(corev1alpha1.Conditioned)
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(obj), stored))
			if diff := cmp.Diff(stored, obj); diff != "" || stored.GetLabels()["a"] != "b" || len(*stored.StatusConditions()) != 1 {
				t.Errorf("stored is %+v; the caller has another state:\n%s", stored, diff)
			}
			kept := older.DeepCopyObject()
			if err := statuswriter.Write(t.Context(), server, older); !apierrors.IsConflict(err) {
				t.Errorf("a write based on an older state ended with %v", err)
			}
			require.Equal(t, kept, older.DeepCopyObject(), "a failed write changed the caller's object")
		})
	}
}
