package packages

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/test/require"
)

// A deployment names only the change to the spec that is rolled out.
func TestChangedWith(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	b := newBench(t)
	pkg := newPackage(func(p *corev1alpha1.Package) { p.Generation, p.Spec.Config = 0, ptrTo(raw(`{"a": 1}`)) })
	server := fake.NewClientBuilder().WithScheme(scheme).Build()
	b.Client = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if p, is := obj.(*corev1alpha1.Package); is {
				pkg.DeepCopyInto(p)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	b.Reader = b.Client
	loads, release := int32(0), make(chan bool, 1)
	b.loads.Load = func(context.Context, load.Request) (*load.Content, error) {
		<-release
		loads++
		loaded := newContent()
		loaded.Template.SuccessDelaySeconds = loads
		return loaded, nil
	}
	chosen, second := "one", int64(0)
	changes := func(user string, change func(*corev1alpha1.PackageSpec)) {
		second++
		pkg.Generation++
		pkg.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "tool-" + user, Time: &metav1.Time{Time: time.Unix(second, 0)}}}
		change(&pkg.Spec)
	}
	reconcile := func(want step) {
		t.Helper()
		s, err := b.gather(t.Context(), keyOf(pkg))
		require.NoError(t, err)
		s.choice = choice.Choice{Origin: choice.Origin{Image: chosen}}
		if s.fingerprint, err = load.FingerprintOf(pkg, s.choice.Origin, env, nil, ""); err != nil {
			t.Fatal(err)
		}
		for _, do := range []func(context.Context) error{s.next(s.decide), s.next(s.startLoad), s.deploy} {
			require.NoError(t, do(t.Context()))
		}
		if s.writeErr != nil || s.step != want {
			t.Fatalf("step %v, want %v: %v", s.step, want, s.writeErr)
		}
		if pkg.Status.ObservedGeneration = pkg.Generation; s.step == stepDeploy {
			pkg.Status.UnpackedHash = s.fingerprint.String()
			s.dropAttempt()
		}
	}
	rollOut := func() {
		t.Helper()
		reconcile(stepLoad)
		release <- true
		b.wait(t)
		reconcile(stepDeploy)
	}
	named := func(what, want string) {
		t.Helper()
		dep := &corev1alpha1.ObjectDeployment{}
		require.NoError(t, server.Get(t.Context(), keyOf(pkg), dep))
		var got []string
		for _, annotation := range []string{corev1alpha1.ChangedWithAnnotation, corev1alpha1.ChangedAtAnnotation} {
			if value := dep.Annotations[annotation]; value != "" {
				got = append(got, value)
			}
		}
		require.Equal(t, want, strings.Join(got, " "), what)
	}

	changes("alice", func(*corev1alpha1.PackageSpec) {})
	rollOut()
	named("installed", "tool-alice 1970-01-01T00:00:01Z")

	changes("bob", func(s *corev1alpha1.PackageSpec) { s.Component = "b" })
	reconcile(stepLoad)
	changes("alice", func(s *corev1alpha1.PackageSpec) { s.ProgressDeadlineSeconds = ptrTo(int32(30)) })
	reconcile(stepWait)
	release <- true
	b.wait(t)
	reconcile(stepDeploy)
	named("a setting is changed while it is loaded", "tool-bob 1970-01-01T00:00:02Z")

	changes("carol", func(s *corev1alpha1.PackageSpec) {
		s.PackageRef = &corev1alpha1.PackageReference{VersionSelection: corev1alpha1.VersionSelection{Version: "1.x"}}
	})
	reconcile(stepSync)
	chosen = "two"
	rollOut()
	named("a version is chosen later", "")

	changes("carol", func(s *corev1alpha1.PackageSpec) { s.PackageRef.Version, chosen = "3.x", "three" })
	rollOut()
	named("another version is requested", "tool-carol 1970-01-01T00:00:05Z")

	entries := pkg.ManagedFields
	changes("dave", func(s *corev1alpha1.PackageSpec) { s.Config = nil })
	pkg.ManagedFields = entries
	rollOut()
	named("a field is removed, which leaves no entry", "")

	changes("erin", func(s *corev1alpha1.PackageSpec) { s.ServiceAccountName = "deployer" })
	reconcile(stepSync)
	named("a setting that makes a revision", "")

	changes("erin", func(s *corev1alpha1.PackageSpec) { s.Paused, s.Component = true, "e" })
	reconcile(stepPaused)
	changes("frank", func(s *corev1alpha1.PackageSpec) { s.Paused = false })
	rollOut()
	named("changed while it was paused", "tool-erin 1970-01-01T00:00:08Z")

	changes("alice", func(s *corev1alpha1.PackageSpec) { s.Component = "f" })
	changes("frank", func(s *corev1alpha1.PackageSpec) { s.Paused = false })
	rollOut()
	named("two changes at once", "")

	b.forget(keyOf(pkg))
	changes("alice", func(s *corev1alpha1.PackageSpec) { s.Component = "g" })
	rollOut()
	named("changed before the manager was started", "")
}
