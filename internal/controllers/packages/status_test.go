package packages

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

// rendered renders conditions as "Type=Status/Reason@generation", sorted.
func rendered(conds []metav1.Condition) string {
	var all []string
	for _, c := range conds {
		all = append(all, fmt.Sprintf("%s=%s/%s@%d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	const (
		progressing = `Progressing=True/Progressing@2
Ready=False/Progressing@2
Reconciling=True/Progressing@2
Unpacked=True/UnpackSuccess@2`
		ready = `Available=True/Available@2
Progressing=False/Idle@2
Ready=True/Available@2
Unpacked=True/UnpackSuccess@2`
	)
	had := func(generation int64, typ string, status bool, reason string) func(*corev1alpha1.Package) {
		return func(p *corev1alpha1.Package) {
			conditions.Set(&p.Status.Conditions, generation, typ, status, reason, "")
		}
	}
	failed := func(err error) *load.Attempt { return &load.Attempt{Done: true, Err: err} }
	invalidBefore := had(1, corev1alpha1.ConditionInvalid, true, corev1alpha1.ReasonLoadError)
	availableBefore := had(1, corev1alpha1.ConditionAvailable, true, corev1alpha1.ReasonAvailable)
	wrong := violation.Violations{{Reason: violation.ReasonConfigInvalid, Field: "a"}, {Reason: violation.ReasonTemplate}}
	pull := &registry.PullError{Ref: image, Reason: registry.ReasonNotFound}
	slow := &registry.PullError{Ref: image, Reason: registry.ReasonTimeout, Temporary: true}

	for name, tc := range map[string]struct {
		reason  string
		pkg     *corev1alpha1.Package
		dep     *corev1alpha1.ObjectDeployment
		attempt *load.Attempt
		outcome outcome
		want    string
	}{
		"deployed": {
			reason: "the next state of the deployment is reported at once",
			pkg:    newPackage(invalidBefore), dep: newOwned(func(d *corev1alpha1.ObjectDeployment) { d.Generation = 8 }),
			outcome: outcome{step: stepDeploy, content: newContent(), deployed: true},
			want:    "Available=False/ObjectSetUnready@2\n" + progressing,
		},
		"upgraded": {
			reason:  "available by the old revision, under the old generation",
			pkg:     newPackage(availableBefore, had(1, corev1alpha1.ConditionProgressing, false, corev1alpha1.ReasonIdle)),
			dep:     newOwned(rolledOut, func(d *corev1alpha1.ObjectDeployment) { d.Generation = 8 }),
			outcome: outcome{step: stepDeploy, content: newContent(), deployed: true},
			want:    "Available=True/Available@1\n" + progressing,
		},
		"relabelled": {
			reason: "the generation of the deployment does not move with its labels, and its status is about the former ones",
			pkg:    newPackage(availableBefore), dep: newOwned(rolledOut, relabelled),
			outcome: outcome{step: stepDeploy, content: newContent(), deployed: true},
			want:    "Available=True/Available@1\n" + progressing,
		},
		"relabelled, for a while": {
			reason: "the deployment has not reported on its labels yet",
			pkg:    unpackedPackage(), dep: newOwned(rolledOut, relabelled), outcome: outcome{step: stepSync},
			want: `Ready=False/Progressing@2
Reconciling=True/Progressing@2
Unpacked=True/UnpackSuccess@2`,
		},
		"relabelled and rolled out": {
			reason: "the deployment has reported on its labels",
			pkg:    unpackedPackage(), dep: newOwned(rolledOut, relabelled, described), outcome: outcome{step: stepSync},
			want: ready,
		},
		"ready with a hash of another engine": {
			reason: "no write since it was ready",
			pkg:    unpackedPackage(had(2, corev1alpha1.ConditionReady, true, corev1alpha1.ReasonAvailable)),
			dep:    newOwned(rolledOut, relabelled), outcome: outcome{step: stepSync},
			want: ready,
		},
		"rolled out": {
			reason: "ready as the deployment is",
			pkg:    unpackedPackage(), dep: newOwned(rolledOut), outcome: outcome{step: stepSync},
			want: ready,
		},
		"stuck": {
			reason: "stalled as the deployment is",
			pkg:    unpackedPackage(),
			dep: newOwned(reports("Available", false, "ObjectSetUnready"), reports("Progressing", false, "ProgressDeadlineExceeded"),
				reports("Ready", false, "ProgressDeadlineExceeded"), reports("Stalled", true, "ProgressDeadlineExceeded")),
			outcome: outcome{step: stepSync},
			want: `Available=False/ObjectSetUnready@2
Progressing=False/ProgressDeadlineExceeded@2
Ready=False/ProgressDeadlineExceeded@2
Stalled=True/ProgressDeadlineExceeded@2
Unpacked=True/UnpackSuccess@2`,
		},
		"mapped and stale conditions": {
			reason: "mapped ones are those of the deployment, and only if they are about its spec",
			pkg:    unpackedPackage(had(2, "my.test/Gone", true, "X"), had(2, "my.test/Stale", true, "X")),
			dep: newOwned(rolledOut, reports("my.test/Here", true, "Y"), reports("Other", true, "Y"), func(d *corev1alpha1.ObjectDeployment) {
				conditions.Set(&d.Status.Conditions, 6, "my.test/Stale", true, "Y", "")
			}),
			outcome: outcome{step: stepSync},
			want:    ready + "\nmy.test/Here=True/Y@2",
		},
		"pull failed": {
			reason: "the installed content stays, and Invalid of the former spec is over",
			pkg:    newPackage(invalidBefore), dep: newOwned(rolledOut), attempt: failed(pull), outcome: outcome{step: stepWait},
			want: `Available=True/Available@2
Progressing=False/Idle@2
Ready=False/ImagePullBackOff@2
Stalled=True/ImagePullBackOff@2
Unpacked=False/ImagePullBackOff@2`,
		},
		"registry is slow": {
			reason: "no user has to act",
			pkg:    newPackage(), attempt: failed(slow), outcome: outcome{step: stepWait},
			want: `Ready=False/ImagePullBackOff@2
Reconciling=True/ImagePullBackOff@2
Unpacked=False/ImagePullBackOff@2`,
		},
		"wrong package": {
			reason: "one condition is true, by the first stage that failed",
			pkg:    newPackage(), attempt: failed(wrong), outcome: outcome{step: stepRefuse},
			want: `Invalid=True/ConfigInvalid@2
Ready=False/ConfigInvalid@2
Stalled=True/ConfigInvalid@2
Unpacked=False/ConfigInvalid@2`,
		},
		"collision": {
			reason: "the same for a deployment in the way, whose conditions are not ours",
			pkg:    newPackage(), outcome: outcome{step: stepYield, why: "ObjectDeployment shop exists"},
			dep: newOwned(rolledOut, controlledBy("HostedClusterPackage", "shop", "")),
			want: `Invalid=True/CollisionDetected@2
Ready=False/CollisionDetected@2
Stalled=True/CollisionDetected@2
Unpacked=False/CollisionDetected@2`,
		},
		"loading": {
			reason: "a new spec is being loaded, and the former one is available",
			pkg:    newPackage(invalidBefore, had(1, "Available", false, "X"), had(1, "Progressing", false, "X")), dep: newOwned(rolledOut), attempt: &load.Attempt{}, outcome: outcome{step: stepWait},
			want: `Available=True/Available@1
Invalid=True/LoadError@1
Progressing=False/Idle@1
Ready=False/Progressing@2
Reconciling=True/Progressing@2`,
		},
		"loading after a restore": {
			reason: "the generation that is rolled out is not known",
			pkg:    newPackage(), dep: newOwned(rolledOut), attempt: &load.Attempt{}, outcome: outcome{step: stepLoad},
			want: `Ready=False/Progressing@2
Reconciling=True/Progressing@2`,
		},
		"loading again": {
			reason: "a retry changes no condition before it has ended",
			pkg: newPackage(func(p *corev1alpha1.Package) {
				p.Status.ObservedGeneration = 2
				conditions.Set(&p.Status.Conditions, 2, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImagePullBackOff, "")
				conditions.Kstatus(&p.Status.Conditions, 2, conditions.State{Stalled: true, Reason: corev1alpha1.ReasonImagePullBackOff})
			}), attempt: &load.Attempt{}, outcome: outcome{step: stepLoad},
			want: `Ready=False/ImagePullBackOff@2
Stalled=True/ImagePullBackOff@2
Unpacked=False/ImagePullBackOff@2`,
		},
		"rolled back to the last good spec": {
			reason: "no load was necessary",
			pkg: func() *corev1alpha1.Package {
				p := unpackedPackage(invalidBefore)
				had(1, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImagePullBackOff)(p)
				return p
			}(), dep: newOwned(rolledOut), outcome: outcome{step: stepSync},
			want: `Available=True/Available@2
Progressing=False/Idle@2
Ready=True/Available@2
Unpacked=True/AlreadyUnpacked@2`,
		},
		"paused": {
			reason: "as the deployment reports",
			pkg:    unpackedPackage(paused), dep: newOwned(rolledOut, reports("Paused", true, "Paused")), outcome: outcome{step: stepSync},
			want: `Available=True/Available@2
Paused=True/Paused@2
Progressing=False/Idle@2
Ready=True/Available@2
Unpacked=True/UnpackSuccess@2`,
		},
		"resumed": {
			reason: "Paused is removed if the deployment does not report it",
			pkg:    unpackedPackage(had(2, "Paused", true, "Paused")), dep: newOwned(rolledOut, reports("Paused", false, "Paused")), outcome: outcome{step: stepSync},
			want: ready,
		},
		"new and paused": {
			reason: "reported although there is no deployment",
			pkg:    newPackage(paused), outcome: outcome{step: stepPaused},
			want: `Paused=True/Paused@2
Ready=False/Paused@2
Reconciling=True/Paused@2`,
		},
		"deployment deleted": {
			reason: "a deleted package is not available",
			pkg:    unpackedPackage(had(2, "Available", true, "X"), had(2, "Progressing", true, "X"), had(2, "my.test/X", true, "X")), attempt: &load.Attempt{}, outcome: outcome{step: stepLoad},
			want: `Ready=False/Progressing@2
Reconciling=True/Progressing@2
Unpacked=True/UnpackSuccess@2`,
		},
		"deployment refused": {
			reason: "an API server's refusal is on the status",
			pkg:    newPackage(), attempt: &load.Attempt{Done: true, Out: load.Out{Content: newContent()}},
			outcome: outcome{step: stepDeploy, content: newContent(), writeErr: errors.New("namespace is terminating")},
			want: `Ready=False/ApplyError@2
Reconciling=True/ApplyError@2`,
		},
		"being deleted": {
			reason: "the teardown is reported, not the image",
			pkg: unpackedPackage(func(p *corev1alpha1.Package) {
				p.DeletionTimestamp = &metav1.Time{Time: start}
			}), dep: newOwned(reports("Available", false, "TearingDown"), reports("Ready", false, "TearingDown")),
			want: `Available=False/TearingDown@2
Ready=False/TearingDown@2
Reconciling=True/TearingDown@2
Unpacked=True/UnpackSuccess@2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{pkg: tc.pkg, choice: imageChoice, fingerprint: printOf(tc.pkg), attempt: tc.attempt, now: start, outcome: tc.outcome}
			if tc.dep != nil {
				v.dep = tc.dep
			}
			got := statusOf(v)
			if diff := cmp.Diff(tc.want, rendered(got.Conditions)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if got.ObservedGeneration != tc.pkg.Generation {
				t.Errorf("observedGeneration is %d", got.ObservedGeneration)
			}
			*tc.pkg.PackageStatus() = *got
			v.deployed = false
			if again := statusOf(v); !cmp.Equal(got, again) {
				t.Errorf("not stable after one write: %s", cmp.Diff(got, again))
			}
		})
	}
}

func TestStatusRecordsWhatWasUnpacked(t *testing.T) {
	t.Parallel()
	pkg, content := newPackage(), newContent()
	content.Warnings = []string{"spec.foo is not known", "spec.bar is not known"}
	v := view{pkg: pkg, choice: imageChoice, dep: newOwned(rolledOut), fingerprint: printOf(pkg), outcome: outcome{step: stepDeploy, content: content}}
	got := statusOf(v)
	if got.UnpackedHash != printOf(pkg).String() || got.Revision != 3 {
		t.Errorf("hash %s, revision %d", got.UnpackedHash, got.Revision)
	}
	require.Equal(t, &content.Resolved, got.Resolved)
	message := meta.FindStatusCondition(got.Conditions, corev1alpha1.ConditionUnpacked).Message
	for _, want := range append(content.Warnings, image, digest) {
		if !strings.Contains(message, want) {
			t.Errorf("%q is not in %q", want, message)
		}
	}
}

func TestStatusKeepsTransitionTimes(t *testing.T) {
	t.Parallel()
	old := metav1.NewTime(start)
	pkg := unpackedPackage(func(p *corev1alpha1.Package) {
		p.Status.Conditions = []metav1.Condition{
			{Type: "Available", Status: "True", LastTransitionTime: old}, {Type: "my.test/Here", Status: "True", LastTransitionTime: old},
		}
	})
	v := view{pkg: pkg, choice: imageChoice, dep: newOwned(rolledOut, reports("my.test/Here", true, "Y")), fingerprint: printOf(pkg)}
	for _, typ := range []string{"Available", "my.test/Here"} {
		if c := meta.FindStatusCondition(statusOf(v).Conditions, typ); !c.LastTransitionTime.Equal(&old) {
			t.Errorf("%s moved to %s", typ, c.LastTransitionTime)
		}
	}
}

func TestUrgent(t *testing.T) {
	t.Parallel()
	base := corev1alpha1.PackageStatus{UnpackedHash: "a", Conditions: []metav1.Condition{{Type: "Available", Status: "False", Message: "a"}}}
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.PackageStatus)
		want   bool
	}{
		"nothing":        {func(*corev1alpha1.PackageStatus) {}, false},
		"message":        {func(s *corev1alpha1.PackageStatus) { s.Conditions[0].Message = "b" }, false},
		"counts":         {func(s *corev1alpha1.PackageStatus) { s.Phases = []corev1alpha1.PhaseStatus{{Ready: 1}} }, false},
		"value":          {func(s *corev1alpha1.PackageStatus) { s.Conditions[0].Status = "True" }, true},
		"new condition":  {func(s *corev1alpha1.PackageStatus) { s.Conditions = append(s.Conditions, metav1.Condition{Type: "X"}) }, true},
		"lost condition": {func(s *corev1alpha1.PackageStatus) { s.Conditions = nil }, true},
		"unpacked":       {func(s *corev1alpha1.PackageStatus) { s.UnpackedHash = "b" }, true},
	} {
		changed := base.DeepCopy()
		tc.change(changed)
		if got := urgent(&base, changed); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	var many violation.Violations
	for i := range 300 {
		many = append(many, violation.Violation{Reason: violation.ReasonMissingPhase, Path: fmt.Sprintf("file-%03d.yaml", i)})
	}
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"few":        {many[:2], []string{"file-000.yaml", "file-001.yaml"}},
		"many":       {many, []string{"file-000.yaml", "more problems; kubectl package validate"}},
		"no package": {errors.New("out of paper"), []string{"out of paper"}},
	} {
		got := problems(tc.err)
		if len(got) > limits.MessageBytes || conditions.Message(got) != got {
			t.Errorf("%s: %d bytes are cut", name, len(got))
		}
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", name, got, want)
			}
		}
	}
	shown := strings.Count(problems(many), "file-")
	if want := fmt.Sprintf("… and %d more problems", 300-shown); !strings.Contains(problems(many), want) {
		t.Errorf("%d are shown, and it does not contain %q", shown, want)
	}
}
