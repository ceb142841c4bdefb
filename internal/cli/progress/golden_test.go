package progress_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/test/golden"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// part sets one part of a package's snapshot.
type part func(*progress.Snapshot)

func snapshot(parts ...part) progress.Snapshot {
	pkg := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{
		Name: "cert", Generation: 1, CreationTimestamp: metav1.NewTime(begin),
		Finalizers: []string{corev1alpha1.MetricsFinalizer},
	}}
	pkg.Spec.Image = "registry.example.com/cert:v1.2.0"
	snap := progress.Snapshot{Target: progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "cert"}, Package: pkg}
	for _, p := range parts {
		p(&snap)
	}
	return snap
}

func condition(typ string, status metav1.ConditionStatus, reason, message string) part {
	return func(s *progress.Snapshot) {
		conds := s.Package.StatusConditions()
		*conds = append(*conds, metav1.Condition{
			Type: typ, Status: status, Reason: reason, Message: message,
			ObservedGeneration: s.Package.GetGeneration(), LastTransitionTime: metav1.NewTime(begin.Add(time.Second)),
		})
		s.Package.PackageStatus().ObservedGeneration = s.Package.GetGeneration()
	}
}

func unpacked() part {
	return func(s *progress.Snapshot) {
		condition("Unpacked", "True", "UnpackSuccess", "Loaded registry.example.com/cert:v1.2.0.")(s)
		s.Package.PackageStatus().Resolved = &corev1alpha1.ResolvedPackage{
			PackageName: "cert-operator", Version: "1.2.0", Image: s.Package.PackageSpec().Image,
			Digest: "sha256:" + strings.Repeat("5f", 32),
			Images: []corev1alpha1.PackageImage{
				{Name: "manager", Image: "registry.example.com/cert/manager:v1.2.0", Digest: "sha256:" + strings.Repeat("7a", 32)},
				{Image: "registry.example.com/proxy:v0.18\u001b[2J"},
			},
			OmittedImages: 3,
		}
	}
}

func revision(n int64, phases ...corev1alpha1.PhaseStatus) part {
	return func(s *progress.Snapshot) {
		s.Package.PackageStatus().Revision, s.Package.PackageStatus().Phases = n, phases
	}
}

func phase(name string, state corev1alpha1.PhaseState, ready, total int32) corev1alpha1.PhaseStatus {
	return corev1alpha1.PhaseStatus{Name: name, State: state, Ready: ready, Total: total}
}

func blocking(objects ...corev1alpha1.BlockingObject) part {
	return func(s *progress.Snapshot) { s.Package.PackageStatus().Blocking = objects }
}

func deployment(message string) corev1alpha1.BlockingObject {
	return corev1alpha1.BlockingObject{Group: "apps", Kind: "Deployment", Namespace: "cert-system", Name: "cert", Phase: "deploy", Message: message}
}

// set adds the revision that the package's status is about. The first objects, as many as written,
// are written.
func set(written int) part {
	return func(s *progress.Snapshot) {
		set := &corev1alpha1.ClusterObjectSet{}
		set.Spec.Revision = s.Package.PackageStatus().Revision
		set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{
			{Name: "crds", Objects: objects("apiextensions.k8s.io/v1 CustomResourceDefinition  issuers.cert.example.com")},
			{Name: "deploy", Objects: objects("v1 Namespace  cert-system", "v1 ServiceAccount cert-system cert", "apps/v1 Deployment cert-system cert")},
			{Name: "issuers", Objects: objects("cert.example.com/v1 Issuer  default")},
		}
		set.Status.Phases, set.Status.Blocking = s.Package.PackageStatus().Phases, s.Package.PackageStatus().Blocking
		refs := []corev1alpha1.ControlledObjectReference{
			{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "issuers.cert.example.com"},
			{Kind: "Namespace", Name: "cert-system"},
			{Kind: "ServiceAccount", Namespace: "cert-system", Name: "cert"},
			{Group: "apps", Kind: "Deployment", Namespace: "cert-system", Name: "cert"},
			{Group: "cert.example.com", Kind: "Issuer", Name: "default"},
		}
		set.Status.ControllerOf = refs[:written]
		s.Set = set
	}
}

func objects(specs ...string) []corev1alpha1.ObjectSetObject {
	var out []corev1alpha1.ObjectSetObject
	for _, spec := range specs {
		f := strings.Split(spec, " ")
		raw := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q}}`, f[0], f[1], f[2], f[3])
		out = append(out, corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(raw)}})
	}
	return out
}

func deleting(finalizers ...string) part {
	return func(s *progress.Snapshot) {
		now := metav1.NewTime(begin)
		s.Package.SetDeletionTimestamp(&now)
		s.Package.SetFinalizers(append(s.Package.GetFinalizers(), finalizers...))
	}
}

func newGeneration() part {
	return func(s *progress.Snapshot) {
		s.Package.SetGeneration(s.Package.GetGeneration() + 1)
		s.Package.PackageSpec().Image = "registry.example.com/cert:v1.3.0"
	}
}

const (
	waiting, applying, probing  = corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateProbing
	ready, tearingDown, removed = corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateTearingDown, corev1alpha1.PhaseStateGone
)

const noReplicas = `condition "Available" is "False": Deployment does not have minimum availability.`

type step struct {
	at   time.Duration
	what string
	snap progress.Snapshot
}

func installSteps() []step {
	rollingOut := condition("Available", "False", "ObjectSetUnready", "revision shop-1 has not become available yet")
	return []step{
		{0, "created", snapshot()},
		{200 * time.Millisecond, "unpacked", snapshot(unpacked())},
		{300 * time.Millisecond, "first phase", snapshot(unpacked(), rollingOut, revision(1,
			phase("crds", applying, 0, 1), phase("deploy", waiting, 0, 3), phase("issuers", waiting, 0, 1)), set(0))},
		{900 * time.Millisecond, "second phase waits", snapshot(unpacked(), rollingOut, revision(1,
			phase("crds", ready, 1, 1), phase("deploy", probing, 2, 3), phase("issuers", waiting, 0, 1)),
			blocking(deployment(noReplicas)), set(4))},
		{2 * time.Second, "last phase", snapshot(unpacked(), rollingOut, revision(1,
			phase("crds", ready, 1, 1), phase("deploy", ready, 3, 3), phase("issuers", applying, 0, 1)), set(4))},
		{2200 * time.Millisecond, "available", snapshot(unpacked(),
			condition("Available", "True", "Available", "Latest revision cert-1 is available."),
			condition("Progressing", "False", "Idle", "The latest revision was rolled out."),
			condition("Ready", "True", "Idle", ""),
			revision(1, phase("crds", ready, 1, 1), phase("deploy", ready, 3, 3), phase("issuers", ready, 1, 1)), set(5))},
	}
}

func refusedSteps() []step {
	return []step{
		{0, "many problems", snapshot(condition("Invalid", "True", "LoadError", "first\nsecond\nthird"))},
		{time.Second, "taken by another owner", snapshot(unpacked(), condition("Stalled", "True", "CollisionDetected", "refused"),
			revision(1, phase("crds", waiting, 0, 1), phase("deploy", waiting, 0, 3)),
			blocking(corev1alpha1.BlockingObject{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "issuers.cert.example.com", Phase: "crds", Message: "exists already"}))},
		{2 * time.Second, "no such image", snapshot(condition("Unpacked", "False", "ImagePullBackOff", "image not found"), condition("Stalled", "True", "ImagePullBackOff", "image not found"))},
	}
}

func deleteSteps() []step {
	return []step{
		{0, "begun", snapshot(unpacked(), deleting(), revision(1,
			phase("crds", ready, 1, 1), phase("deploy", ready, 3, 3), phase("issuers", ready, 1, 1)))},
		{300 * time.Millisecond, "last phase first", snapshot(unpacked(), deleting(), revision(1,
			phase("crds", tearingDown, 0, 1), phase("deploy", tearingDown, 0, 3), phase("issuers", tearingDown, 0, 1)))},
		{time.Second, "held", snapshot(unpacked(), deleting("example.com/hold"), revision(1,
			phase("crds", tearingDown, 0, 1), phase("deploy", tearingDown, 1, 3), phase("issuers", removed, 1, 1)),
			blocking(deployment("is being deleted and held by the finalizer example.com/backup")))},
		{2 * time.Second, "held by the package's own finalizer", snapshot(unpacked(), deleting("example.com/hold"), revision(1,
			phase("crds", removed, 1, 1), phase("deploy", removed, 3, 3), phase("issuers", removed, 1, 1)))},
		{3 * time.Second, "gone", func() progress.Snapshot { s := snapshot(); s.Package = nil; return s }()},
	}
}

// The golden files show the lines and the verdict of each step.
func TestGolden(t *testing.T) {
	t.Parallel()
	install, refused := &progress.Install{}, &progress.Install{}
	for name, tc := range map[string]struct {
		steps []step
		judge func(progress.State, time.Time) progress.Outcome
	}{
		"install": {installSteps(), install.Assess},
		"refused": {refusedSteps(), refused.Assess},
		"delete":  {deleteSteps(), progress.AssessDeletion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			var last progress.State
			for _, st := range tc.steps {
				s := progress.Of(st.snap)
				v := tc.judge(s, begin.Add(st.at))
				fmt.Fprintf(&out, "=== %s\n", st.what)
				for _, line := range progress.Lines(last, s) {
					out.WriteString(line + "\n")
				}
				last = progress.Remember(last, s)
				fmt.Fprintf(&out, "--- done %t, failed %t\n%s\n\n", v.Done, v.Failed, progress.Culprit(s))
			}
			golden.Text(t, "testdata/"+name+".txt", out.String())
		})
	}
}

func TestScreenGolden(t *testing.T) {
	t.Parallel()
	installed := installSteps()
	for name, snap := range map[string]progress.Snapshot{
		"screen-available": installed[5].snap,
		"screen-blocked":   installed[3].snap,
		"screen-deleting":  deleteSteps()[2].snap,
		"screen-pending":   snapshot(),
		"screen-invalid": snapshot(condition("Invalid", "True", "LoadError",
			"PackageManifest invalid in manifest.yaml line 7: spec.phase: unknown field. Did you mean \"phases\"?\nMissing package-operator.run/phase Annotation in cm.yaml idx 0")),
		"screen-ignored": snapshot(condition("Unpacked", "True", "UnpackSuccess", "Loaded x. Ignored:\nPackageManifest invalid in manifest.yaml: spec.foo: unknown field\nanother \x1b thing")),
		"screen-refused": snapshot(condition("Invalid", "True", "ConstraintsFailed", "needs OpenShift"), condition("Unpacked", "False", "ConstraintsFailed", "See the condition Invalid.")),
		"screen-upgrade": snapshot(unpacked(),
			condition("Available", "True", "Available", "Previous revision cert-1 is still available."),
			condition("Progressing", "True", "LatestRevisionPendingSuccess", "cert-2: "+noReplicas),
			condition("Ready", "False", "LatestRevisionPendingSuccess", "cert-2: "+noReplicas),
			revision(2, phase("crds", ready, 1, 1), phase("deploy", probing, 2, 3)),
			blocking(deployment(noReplicas), deployment("other\x1b[31m text"))),
		"screen-collision": snapshot(unpacked(),
			condition("Stalled", "True", "CollisionDetected", "refused"),
			revision(1, phase("crds", waiting, 0, 1)),
			blocking(corev1alpha1.BlockingObject{Kind: "ConfigMap", Namespace: "shop", Name: "settings", Message: "exists already and is controlled by Deployment shop/web"})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Text(t, "testdata/"+name+".txt", progress.Screen(progress.ReportOf(snap), progress.ScreenOptions{
				Now: begin.Add(2 * time.Minute), Styles: terminal.Plain(),
			}))
		})
	}
}

// Texts of a cluster cannot control the terminal.
func TestUntrustedText(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\x07\x1b[2J\u202e\r"
	snap := snapshot(unpacked(), condition("Available", "False", evil, evil), condition("Stalled", "True", evil, evil),
		condition(evil, "True", evil, evil),
		revision(1, phase("deploy"+evil, probing, 0, 1)),
		blocking(corev1alpha1.BlockingObject{Group: evil, Kind: evil, Namespace: evil, Name: evil, Phase: "deploy" + evil, Message: evil}),
		deleting(evil))
	snap.Package.PackageSpec().Image, snap.Package.PackageSpec().Component, snap.Lost = evil, evil, evil
	r := snap.Package.PackageStatus().Resolved
	r.PackageName, r.Version, r.Digest = evil, evil, evil
	for _, isDeleting := range []bool{true, false} {
		if !isDeleting {
			snap.Package.SetDeletionTimestamp(nil)
		}
		s := progress.Of(snap)
		out := strings.Join(progress.Lines(progress.State{}, s), "\n") + progress.Culprit(s) +
			progress.Screen(progress.ReportOf(snap), progress.ScreenOptions{Now: begin, Styles: terminal.Plain()})
		for _, bad := range []string{"\x1b", "\x07", "\u202e", "\r"} {
			if strings.Contains(out, bad) {
				t.Errorf("%q came through:\n%q", bad, out)
			}
		}
	}
}
