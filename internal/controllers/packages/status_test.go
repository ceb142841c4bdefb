package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/permissions"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// rendered returns conditions as "Type=Status/Reason@generation", sorted.
func rendered(conds []metav1.Condition) (all []string) {
	for _, c := range conds {
		all = append(all, fmt.Sprintf("%s=%s/%s@%d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	slices.Sort(all)
	return all
}

func TestStatus(t *testing.T) {
	t.Parallel()
	const (
		progressing = "Progressing=True/Progressing@2 Ready=False/Progressing@2 Reconciling=True/Progressing@2 Unpacked=True/UnpackSuccess@2"
		ready       = "Available=True/Available@2 Progressing=False/Idle@2 Ready=True/Available@2 Unpacked=True/UnpackSuccess@2"
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
		"deployed": {"the next state of the deployment is reported at once",
			newPackage(invalidBefore), newOwned(func(d *corev1alpha1.ObjectDeployment) { d.Generation = 8 }), nil,
			outcome{step: stepDeploy, content: newContent(), deployed: true}, "Available=False/ObjectSetUnready@2 " + progressing},
		"upgraded": {"available by the old revision, under the old generation",
			newPackage(availableBefore, had(1, corev1alpha1.ConditionProgressing, false, corev1alpha1.ReasonIdle)),
			newOwned(rolledOut, func(d *corev1alpha1.ObjectDeployment) { d.Generation = 8 }), nil,
			outcome{step: stepDeploy, content: newContent(), deployed: true}, "Available=True/Available@1 " + progressing},
		"relabelled": {"the generation of the deployment does not move with its labels, and its status is about the former ones",
			newPackage(availableBefore), newOwned(rolledOut, relabelled), nil, outcome{step: stepDeploy, content: newContent(), deployed: true},
			"Available=True/Available@1 " + progressing},
		"relabelled, for a while": {"the deployment has not reported on its labels yet",
			unpackedPackage(), newOwned(rolledOut, relabelled), nil, outcome{step: stepSync},
			"Ready=False/Progressing@2 Reconciling=True/Progressing@2 Unpacked=True/UnpackSuccess@2"},
		"relabelled and rolled out": {"the deployment has reported on its labels",
			unpackedPackage(), newOwned(rolledOut, relabelled, described), nil, outcome{step: stepSync}, ready},
		"ready with a hash of another engine": {"no write since it was ready",
			unpackedPackage(had(2, corev1alpha1.ConditionReady, true, corev1alpha1.ReasonAvailable)), newOwned(rolledOut, relabelled), nil,
			outcome{step: stepSync}, ready},
		"rolled out": {"ready as the deployment is", unpackedPackage(), newOwned(rolledOut), nil, outcome{step: stepSync}, ready},
		"stuck": {"stalled as the deployment is",
			unpackedPackage(),
			newOwned(reports("Available", false, "ObjectSetUnready"), reports("Progressing", false, "ProgressDeadlineExceeded"),
				reports("Ready", false, "ProgressDeadlineExceeded"), reports("Stalled", true, "ProgressDeadlineExceeded")), nil,
			outcome{step: stepSync},
			"Available=False/ObjectSetUnready@2 Progressing=False/ProgressDeadlineExceeded@2 Ready=False/ProgressDeadlineExceeded@2 Stalled=True/ProgressDeadlineExceeded@2 Unpacked=True/UnpackSuccess@2"},
		"mapped and stale conditions": {"mapped ones are those of the deployment, and only if they are about its spec",
			unpackedPackage(had(2, "my.test/Gone", true, "X"), had(2, "my.test/Stale", true, "X")),
			newOwned(rolledOut, reports("my.test/Here", true, "Y"), reports("Other", true, "Y"), func(d *corev1alpha1.ObjectDeployment) {
				conditions.Set(&d.Status.Conditions, 6, "my.test/Stale", true, "Y", "")
			}), nil, outcome{step: stepSync}, ready + " my.test/Here=True/Y@2"},
		"pull failed": {"the installed content stays, and Invalid of the former spec is over",
			newPackage(invalidBefore), newOwned(rolledOut), failed(pull), outcome{step: stepWait},
			"Available=True/Available@2 Progressing=False/Idle@2 Ready=False/ImagePullBackOff@2 Stalled=True/ImagePullBackOff@2 Unpacked=False/ImagePullBackOff@2"},
		"registry is slow": {"no user has to act",
			newPackage(), nil, failed(slow), outcome{step: stepWait},
			"Ready=False/ImagePullBackOff@2 Reconciling=True/ImagePullBackOff@2 Unpacked=False/ImagePullBackOff@2"},
		"wrong package": {"one condition is true, by the first stage that failed",
			newPackage(), nil, failed(wrong), outcome{step: stepRefuse},
			"Invalid=True/ConfigInvalid@2 Ready=False/ConfigInvalid@2 Stalled=True/ConfigInvalid@2 Unpacked=False/ConfigInvalid@2"},
		"collision": {"the same for a deployment in the way, whose conditions are not ours",
			newPackage(), newOwned(rolledOut, controlledBy("HostedClusterPackage", "shop", "")), nil,
			outcome{step: stepYield, why: "ObjectDeployment shop exists"},
			"Invalid=True/CollisionDetected@2 Ready=False/CollisionDetected@2 Stalled=True/CollisionDetected@2 Unpacked=False/CollisionDetected@2"},
		"loading": {"a new spec is being loaded, and the former one is available",
			newPackage(invalidBefore, had(1, "Available", false, "X"), had(1, "Progressing", false, "X")), newOwned(rolledOut), &load.Attempt{},
			outcome{step: stepWait},
			"Available=True/Available@1 Invalid=True/LoadError@1 Progressing=False/Idle@1 Ready=False/Progressing@2 Reconciling=True/Progressing@2"},
		"loading after a restore": {"the generation that is rolled out is not known",
			newPackage(), newOwned(rolledOut), &load.Attempt{}, outcome{step: stepLoad}, "Ready=False/Progressing@2 Reconciling=True/Progressing@2"},
		"loading again": {"a retry changes no condition before it has ended",
			newPackage(func(p *corev1alpha1.Package) {
				p.Status.ObservedGeneration = 2
				conditions.Set(&p.Status.Conditions, 2, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImagePullBackOff, "")
				conditions.Kstatus(&p.Status.Conditions, 2, conditions.State{Stalled: true, Reason: corev1alpha1.ReasonImagePullBackOff})
			}), nil, &load.Attempt{}, outcome{step: stepLoad},
			"Ready=False/ImagePullBackOff@2 Stalled=True/ImagePullBackOff@2 Unpacked=False/ImagePullBackOff@2"},
		"rolled back to the last good spec": {"no load was necessary",
			func() *corev1alpha1.Package {
				p := unpackedPackage(invalidBefore)
				had(1, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImagePullBackOff)(p)
				return p
			}(), newOwned(rolledOut), nil, outcome{step: stepSync},
			"Available=True/Available@2 Progressing=False/Idle@2 Ready=True/Available@2 Unpacked=True/AlreadyUnpacked@2"},
		"paused": {"as the deployment reports",
			unpackedPackage(paused), newOwned(rolledOut, reports("Paused", true, "Paused")), nil, outcome{step: stepSync},
			"Available=True/Available@2 Paused=True/Paused@2 Progressing=False/Idle@2 Ready=True/Available@2 Unpacked=True/UnpackSuccess@2"},
		"resumed": {"Paused is removed if the deployment does not report it",
			unpackedPackage(had(2, "Paused", true, "Paused")), newOwned(rolledOut, reports("Paused", false, "Paused")), nil, outcome{step: stepSync},
			ready},
		"new and paused": {"reported although there is no deployment",
			newPackage(paused), nil, nil, outcome{step: stepPaused}, "Paused=True/Paused@2 Ready=False/Paused@2 Reconciling=True/Paused@2"},
		"deployment deleted": {"a deleted package is not available",
			unpackedPackage(had(2, "Available", true, "X"), had(2, "Progressing", true, "X"), had(2, "my.test/X", true, "X")), nil, &load.Attempt{},
			outcome{step: stepLoad}, "Ready=False/Progressing@2 Reconciling=True/Progressing@2 Unpacked=True/UnpackSuccess@2"},
		"deployment refused": {"an API server's refusal is on the status",
			newPackage(), nil, &load.Attempt{Done: true, Out: load.Out{Content: newContent()}},
			outcome{step: stepDeploy, content: newContent(), writeErr: errors.New("namespace is terminating")},
			"Ready=False/ApplyError@2 Reconciling=True/ApplyError@2"},
		"being deleted": {"the teardown is reported, not the image",
			unpackedPackage(func(p *corev1alpha1.Package) { p.DeletionTimestamp = &metav1.Time{Time: start} }),
			newOwned(reports("Available", false, "TearingDown"), reports("Ready", false, "TearingDown")), nil, outcome{},
			"Available=False/TearingDown@2 Ready=False/TearingDown@2 Reconciling=True/TearingDown@2 Unpacked=True/UnpackSuccess@2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{pkg: tc.pkg, choice: imageChoice, fingerprint: printOf(tc.pkg), attempt: tc.attempt, now: start, outcome: tc.outcome}
			if tc.dep != nil {
				v.dep = tc.dep
			}
			got := statusOf(v)
			require.Equal(t, strings.Fields(tc.want), rendered(got.Conditions), tc.reason)
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
		require.Contains(t, message, want)
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
		require.Equal(t, tc.want, urgent(&base, changed), name)
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
			require.Contains(t, got, want, name)
		}
	}
	shown := strings.Count(problems(many), "file-")
	if want := fmt.Sprintf("… and %d more problems", 300-shown); !strings.Contains(problems(many), want) {
		t.Errorf("%d are shown, and it does not contain %q", shown, want)
	}
}

// TestTargetStatus: the Package reports why a target cannot be used, and is Stalled if a user has
// to act.
func TestTargetStatus(t *testing.T) {
	t.Parallel()
	away := func(reason string) *targets.State { return &targets.State{Reason: reason, Message: "why"} }
	connected := &targets.State{Ready: true, Reason: corev1alpha1.ReasonTargetConnected, Message: "The target is connected."}
	into := func(p *corev1alpha1.Package) {
		p.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}}
	}
	const unpacked = "Unpacked=True/UnpackSuccess@2"
	applyError := func(generation int64) func(*corev1alpha1.ObjectDeployment) {
		return func(d *corev1alpha1.ObjectDeployment) {
			conditions.Kstatus(&d.Status.Conditions, generation, conditions.State{Stalled: true, Reason: corev1alpha1.ReasonApplyError, Message: "may not list"})
			d.Status.ObservedGeneration = 0
		}
	}
	for name, tc := range map[string]struct {
		state  *targets.State
		dep    *corev1alpha1.ObjectDeployment
		step   step
		reason string
		want   string
	}{
		"missing":                     {state: away(corev1alpha1.ReasonKubeconfigMissing), step: stepGather, want: "Ready=False/KubeconfigMissing@2 Stalled=True/KubeconfigMissing@2 TargetConnected=False/KubeconfigMissing@2 " + unpacked},
		"refused":                     {state: away(corev1alpha1.ReasonKubeconfigRefused), step: stepGather, want: "Ready=False/KubeconfigRefused@2 Stalled=True/KubeconfigRefused@2 TargetConnected=False/KubeconfigRefused@2 " + unpacked},
		"unauthorized":                {state: away(corev1alpha1.ReasonTargetUnauthorized), step: stepGather, want: "Ready=False/Unauthorized@2 Stalled=True/Unauthorized@2 TargetConnected=False/Unauthorized@2 " + unpacked},
		"away":                        {state: away(corev1alpha1.ReasonTargetUnreachable), step: stepGather, want: "Ready=False/Unreachable@2 Reconciling=True/Unreachable@2 TargetConnected=False/Unreachable@2 " + unpacked},
		"no object can be read there": {state: connected, step: stepGather, reason: corev1alpha1.ReasonForbidden, want: "Ready=False/Forbidden@2 Stalled=True/Forbidden@2 TargetConnected=True/Connected@2 " + unpacked},
		"another cluster": {state: connected, step: stepSync,
			dep:  newOwned(reports(corev1alpha1.ConditionTargetConnected, false, corev1alpha1.ReasonOtherCluster), reports(corev1alpha1.ConditionReady, false, corev1alpha1.ReasonOtherCluster), reports(corev1alpha1.ConditionStalled, true, corev1alpha1.ReasonOtherCluster)),
			want: "Ready=False/OtherCluster@2 Stalled=True/OtherCluster@2 TargetConnected=False/OtherCluster@2 " + unpacked},
		"connected again": {state: connected, step: stepSync,
			dep:  newOwned(rolledOut, described, reports(corev1alpha1.ConditionTargetConnected, false, corev1alpha1.ReasonTargetUnreachable)),
			want: "Available=True/Available@2 Progressing=False/Idle@2 Ready=True/Available@2 TargetConnected=True/Connected@2 " + unpacked},
		"without rights": {state: connected, step: stepSync, dep: newOwned(applyError(7)),
			want: "Ready=False/ApplyError@2 Stalled=True/ApplyError@2 TargetConnected=True/Connected@2 " + unpacked},
		"an error of an earlier template": {state: connected, step: stepSync, dep: newOwned(applyError(6)),
			want: "Ready=False/Progressing@2 Reconciling=True/Progressing@2 TargetConnected=True/Connected@2 " + unpacked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := unpackedPackage(into)
			v := view{pkg: pkg, choice: imageChoice, now: start, inputs: inputs{targetState: tc.state, inputReason: tc.reason}, outcome: outcome{step: tc.step, why: "Waiting for the target. why"}}
			if tc.dep != nil {
				v.dep = tc.dep
			}
			require.Equal(t, strings.Fields(tc.want), rendered(statusOf(v).Conditions), "the conditions")
		})
	}
}

func refuseImage(pkg *corev1alpha1.Package) {
	conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionUnpacked, false, corev1alpha1.ReasonImageNotVerified, "no signature")
}

// The condition Verified describes the last load that has ended.
func TestReportVerified(t *testing.T) {
	t.Parallel()
	refusal := &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "the registry has no signature"}
	away := imagepolicy.Unreachable(&registry.PullError{Reason: registry.ReasonTimeout, Details: "no answer", Temporary: true})
	loaded := func(outcome *imagepolicy.Outcome) *load.Attempt {
		a := &load.Attempt{Done: true}
		a.Out.Content = &load.Content{Verification: outcome}
		return a
	}
	for name, tc := range map[string]struct {
		attempt *load.Attempt
		want    string
	}{
		"no load":       {nil, "True/Verified/before"},
		"loading":       {&load.Attempt{Err: refusal}, "True/Verified/before"},
		"another error": {&load.Attempt{Done: true, Err: errors.New("no route")}, "True/Verified/before"},
		"not required":  {loaded(nil), ""},
		"verified":      {loaded(&imagepolicy.Outcome{Verified: &imagepolicy.Verified{Authority: "a", Policy: "p", Subject: "s", Issuer: "i"}}), "True/Verified/Signed by the authority a of the ImageConfig p as s (i)."},
		"warned":        {loaded(&imagepolicy.Outcome{Refusal: refusal}), "False/NoSignature/the registry has no signature."},
		"refused":       {&load.Attempt{Done: true, Err: refusal.About("ghcr.io/a")}, "False/NoSignature/the image ghcr.io/a is not verified: the registry has no signature."},
		"unreachable":   {&load.Attempt{Done: true, Err: away}, "Unknown/RegistryUnreachable/its signatures cannot be read: pull image \"\": timeout: no answer."},
	} {
		status := &corev1alpha1.PackageStatus{}
		conditions.Set(&status.Conditions, 1, corev1alpha1.ConditionVerified, true, corev1alpha1.ReasonVerified, "before")
		reportVerified(status, view{pkg: newPackage(), inputs: inputs{}, attempt: tc.attempt})
		got := ""
		if c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionVerified); c != nil {
			got = strings.Join([]string{string(c.Status), c.Reason, c.Message}, "/")
		}
		require.Equal(t, tc.want, got, name)
	}
	for err, stalled := range map[error]bool{refusal: true, away: false} {
		if state, ok := imageconfigs.NotVerified(err); !ok || state.Stalled != stalled || state.Reason != corev1alpha1.ReasonImageNotVerified {
			t.Errorf("%v: %+v", err, state)
		}
	}
	if _, ok := imageconfigs.NotVerified(errors.New("no route")); ok {
		t.Error("every error is about a signature")
	}
}

// A Package without applicable policies has the same fingerprint as without any policies, so that
// an upgrade does not render it again.
func TestPolicyKey(t *testing.T) {
	t.Parallel()
	policy := func(prefix string) imagepolicy.Policy {
		return imagepolicy.Policy{Name: "a", Prefixes: []string{prefix}, Verification: &imagepolicy.Verification{
			Purposes:    []imagepolicy.Purpose{imagepolicy.Package},
			Authorities: []imagepolicy.Authority{signed.NewPair(t).Authority()},
		}}
	}
	key := func(image string, required bool, policies ...imagepolicy.Policy) string {
		v := view{inputs: inputs{policies: imagepolicy.NewSet(policies, required, time.Now())}}
		return v.policyKey(image)
	}
	const image = "ghcr.io/acme/shop:v1"
	require.Equal(t, "", (&view{}).policyKey(image)+key(image, false)+key(image, false, policy("quay.io"))+key("", false, policy("ghcr.io")), "no message, by")
	verified := policy("ghcr.io/acme")
	seen := map[string]bool{}
	for _, got := range []string{
		key(image, false, verified), key(image, false, policy("ghcr.io/acme")), key(image, true), key("", true),
		key(image, false, imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}),
		key("", false, imagepolicy.Policy{Name: "a", Prefixes: []string{"ghcr.io"}, Rewrite: "mirror.example.com"}),
	} {
		if got == "" || seen[got] {
			t.Errorf("%q is incomplete", got)
		}
		seen[got] = true
	}
}

// A package waits without a message only while ImageConfigs are read for the first time. If they
// cannot be read, its status has the reason.
func TestPoliciesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct {
		waiting bool
		message string
	}{
		nil:                     {},
		imageconfigs.ErrNotRead: {waiting: true},
		errors.New("Secret lockstep/key cannot be read: forbidden"): {message: "Waiting for ImageConfigs: Secret lockstep/key cannot be read: forbidden"},
	} {
		s := &reconciliation{Reconciler: &Reconciler{Options: Options{Policies: func() (*imagepolicy.Set, error) { return nil, err }}}}
		s.gatherPolicies()
		if s.waiting != want.waiting || s.inputError != want.message {
			t.Errorf("%v: %t %q", err, s.waiting, s.inputError)
		}
	}
}

var readPods = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}

func TestPermit(t *testing.T) {
	t.Parallel()
	found := permissions.Ceiling{Role: "most", Known: true, Found: true}
	enough := found
	enough.Rules = readPods
	unreadable := enough
	unreadable.Err = errors.New("clusterroles is forbidden")
	for name, tc := range map[string]struct {
		ceiling           permissions.Ceiling
		rules             []rbacv1.PolicyRule
		step              step
		reason, mentioned string
	}{
		"no permissions, no ceiling":          {step: stepDeploy},
		"no ceiling":                          {rules: readPods, step: stepPermit, reason: corev1alpha1.ReasonNoCeiling, mentioned: "--permission-ceiling: get pods."},
		"not read yet":                        {ceiling: permissions.Ceiling{Role: "most"}, rules: readPods, step: stepGather},
		"cannot be read":                      {ceiling: unreadable, rules: readPods, step: stepGather, mentioned: "Waiting for ClusterRole most, the ceiling of the rights of packages: clusterroles is forbidden"},
		"there is no such role":               {ceiling: permissions.Ceiling{Role: "most", Known: true}, rules: readPods, step: stepPermit, reason: corev1alpha1.ReasonNoCeiling, mentioned: "There is no ClusterRole most"},
		"an empty role":                       {ceiling: found, rules: readPods, step: stepPermit, reason: corev1alpha1.ReasonAboveCeiling, mentioned: "ClusterRole most, the ceiling of the rights of packages, does not have, and is not written without them. Ask an administrator to add them, or change the package to require fewer: get pods."},
		"within":                              {ceiling: enough, rules: readPods, step: stepDeploy, reason: corev1alpha1.ReasonPermissionsGranted},
		"a message with many requested rules": {ceiling: found, rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: strings.Split(strings.Repeat("a,", 2000), ",")}}, step: stepPermit, reason: corev1alpha1.ReasonAboveCeiling},
		"what is asked by another name":       {ceiling: enough, rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"pods"}}}, step: stepPermit, reason: corev1alpha1.ReasonAboveCeiling, mentioned: ": * pods."},
	} {
		s := &reconciliation{Reconciler: &Reconciler{Options: Options{Ceiling: func() permissions.Ceiling { return tc.ceiling }}}}
		s.pkg, s.step = newPackage(), stepDeploy
		s.attempt = &load.Attempt{Done: true}
		s.attempt.Out.Content = &load.Content{Rules: tc.rules}
		s.content = s.attempt.Out.Content
		next, why, err := s.permit(context.Background())
		if next != tc.step || err != nil {
			t.Errorf("%s: step %d, want %d (%v)", name, next, tc.step, err)
		}
		s.step, s.why = next, why
		status := &corev1alpha1.PackageStatus{}
		reportPermissions(status, s.view)
		c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionPermissionsGranted)
		if c == nil {
			c = &metav1.Condition{Message: why}
		}
		if c.Reason != tc.reason || !strings.Contains(c.Message, tc.mentioned) || len(c.Message) > 4<<10 || (c.Status == metav1.ConditionTrue) != (tc.reason == corev1alpha1.ReasonPermissionsGranted) {
			t.Errorf("%s: %+v, want %s with %q", name, c, tc.reason, tc.mentioned)
		}
		if state := kstatusOf(s.view, observed(s.view)); next == stepPermit && (!state.Stalled || state.Reason != tc.reason) {
			t.Errorf("%s: %+v", name, state)
		}
	}
}

// Granted rights stay granted until other content is deployed. A version that requires no rights
// has no such condition.
func TestPermissionsAreReportedOfWhatIsDeployed(t *testing.T) {
	t.Parallel()
	status := &corev1alpha1.PackageStatus{}
	v := view{pkg: newPackage(), outcome: outcome{step: stepDeploy, content: &load.Content{Rules: readPods}}}
	reportPermissions(status, v)
	for _, other := range []outcome{{step: stepSync}, {step: stepLoad}, {step: stepDeploy, writeErr: errors.New("conflict"), content: &load.Content{}}} {
		v.outcome = other
		if reportPermissions(status, v); !meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionPermissionsGranted) {
			t.Errorf("step %d: %v", other.step, status.Conditions)
		}
	}
	v.outcome = outcome{step: stepDeploy, content: &load.Content{}}
	if reportPermissions(status, v); len(status.Conditions) > 0 {
		t.Error(status.Conditions)
	}
	v.outcome, v.refused = outcome{step: stepPermit}, conditions.State{Reason: corev1alpha1.ReasonAboveCeiling, Message: "requires more"}
	reportPermissions(status, v)
	for _, other := range []outcome{{step: stepLoad}, {step: stepWait}} {
		v.outcome = other
		if reportPermissions(status, v); !meta.IsStatusConditionFalse(status.Conditions, corev1alpha1.ConditionPermissionsGranted) {
			t.Errorf("refused, step %d: %v", other.step, status.Conditions)
		}
	}
	v.outcome = outcome{step: stepSync}
	if reportPermissions(status, v); len(status.Conditions) > 0 {
		t.Errorf("the version that was refused is not wanted any more: %v", status.Conditions)
	}
}

// A change of the ceiling only enqueues packages that request rights and are not deployed.
func TestCeilingChanged(t *testing.T) {
	t.Parallel()
	r, enqueued := newReconciler(t)
	for name, out := range map[string]load.Out{
		"waits": {Content: &load.Content{Rules: readPods}}, "no permissions": {Content: &load.Content{}}, "deployed": {Content: &load.Content{Rules: readPods}, Deployed: start},
	} {
		s := r.of(named(name, image))
		r.loads.Fail(s.state.load, &load.Attempt{Done: true, Out: out})
	}
	r.of(named("idle", image))
	if r.CeilingChanged(); len(enqueued) != 1 || (<-enqueued).Name != "waits" {
		t.Errorf("%d are enqueued", len(enqueued))
	}
}
