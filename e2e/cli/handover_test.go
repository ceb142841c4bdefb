package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// legacy makes a ConfigMap as an installer does.
func legacy(t *testing.T, env *harness.Env, ns, name, manager string) types.UID {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
		Data:       map[string]string{"value": "old", "extra": "x"},
	}
	require.NoError(t, env.Client.Create(t.Context(), cm, client.FieldOwner(manager)))
	return cm.UID
}

// state is the part of a ConfigMap that an adoption and a release change, or must not change.
type state struct {
	UID                           types.UID
	Controller, Value, Extra      string
	Managed, Adoptable, Annotated bool
}

func stateOf(t *testing.T, env *harness.Env, ns, name string) state {
	t.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, cm))
	s := state{UID: cm.UID, Value: cm.Data["value"], Extra: cm.Data["extra"], Managed: cm.Labels[corev1alpha1.CacheLabel] != ""}
	if ref := metav1.GetControllerOf(cm); ref != nil {
		s.Controller = ref.Kind + " " + ref.Name
	}
	_, s.Adoptable = cm.Annotations[corev1alpha1.AdoptableByAnnotation]
	_, s.Annotated = cm.Annotations[corev1alpha1.DeletionPolicyAnnotation]
	return s
}

// fails runs a command that has to fail with texts.
func fails(t *testing.T, env *harness.Env, texts []string, args ...string) {
	t.Helper()
	r := run(t, env, args...)
	for _, text := range texts {
		if r.code != 1 || !strings.Contains(r.err, text) {
			t.Errorf("%s: exit code %d, want 1 and %q in\n%s%s", strings.Join(args, " "), r.code, text, r.out, r.err)
		}
	}
}

// A package adopts objects of Helm and kubectl one by one, and releases them. Another package
// adopts them afterwards. No object is deleted or recreated.
func TestAdoptAndRelease(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const ns = "handover"
	env.Namespace(t, ns)
	settings, page := legacy(t, env, ns, "settings", "helm"), legacy(t, env, ns, "page", "kubectl-create")
	legacy(t, env, ns, "other", "helm")
	image := env.Push(t, "handover:v1", harness.Files{
		"manifest.yaml": harness.Manifest("web", []string{"config", "deploy"}, ""),
		"settings.yaml": harness.ConfigMap("settings", "config", "new"),
		"page.yaml":     harness.ConfigMap("page", "deploy", "new"),
		"added.yaml":    harness.ConfigMap("added", "deploy", "new"),
	})
	ok(t, env, "install", image, "web", "-n", ns, "--wait=false")

	fails(t, env, []string{"the package does not contain it", "nothing was changed: 1 object of 1 refused"}, "adopt", "cm/other", "--into", "web", "-n", ns, "--yes")
	fails(t, env, []string{"package handover/web would not be rolled out: 1 refusal", "ConfigMap handover/page"}, "adopt", "cm/settings", "--into", "web", "-n", ns, "--yes")
	fails(t, env, []string{"there is no ConfigMap nothing"}, "adopt", "cm/nothing", "--into", "web", "-n", ns)
	both := []string{"adopt", "configmap/settings", "cm/page", "--into", "package/web", "-n", ns}
	r := ok(t, env, append(both, "--dry-run")...)
	for _, text := range []string{
		"< ConfigMap handover/settings\n", "< ConfigMap handover/page\n",
		"taken over from nobody", "- data.extra ", "+ ConfigMap handover/added",
	} {
		if !strings.Contains(r.out, text) {
			t.Errorf("the plan lacks %q:\n%s", text, r.out)
		}
	}
	fails(t, env, []string{"nothing was changed: confirm it with --yes"}, both...)
	before := state{UID: settings, Value: "old", Extra: "x"}
	if diff := cmp.Diff(before, stateOf(t, env, ns, "settings")); diff != "" {
		t.Fatalf("before it was confirmed (-want +got):\n%s", diff)
	}

	r = ok(t, env, append(both, "--yes")...)
	if !strings.Contains(r.out, "package handover/web has adopted 2 objects\n") {
		t.Errorf("adopt says:\n%s%s", r.out, r.err)
	}
	adopted := state{UID: settings, Controller: "ObjectDeployment web", Value: "new", Managed: true}
	require.Equal(t, adopted, stateOf(t, env, ns, "settings"), "the adopted object")
	adopted.UID = page
	require.Equal(t, adopted, stateOf(t, env, ns, "page"), "the adopted object")
	if r := ok(t, env, append(both, "--yes")...); !strings.Contains(r.out, "nothing to do") {
		t.Errorf("the second run prints:\n%s", r.out)
	}
	fails(t, env, []string{"✗ ConfigMap handover/page\n      belongs to ObjectDeployment handover/web"}, "adopt", "cm/page", "--into", second(t, env, ns), "-n", ns, "--yes")
	releases(t, env, ns, page)
}

// An object that another client creates after the rollout has started is adopted by the command that
// the refusal names, although its phase has started.
func TestAdoptOfALaterObject(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const ns = "handover-later"
	env.Namespace(t, ns)
	image := env.Push(t, "handover-later:v1", harness.Files{
		"manifest.yaml": harness.Manifest("web", []string{"config", "deploy"}, `  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes: [{fieldsEqual: {fieldA: .data.value, fieldB: .metadata.annotations.ready}}]
`),
		"settings.yaml": harness.ConfigMap("settings", "config", "new"),
		"late.yaml":     harness.ConfigMap("late", "deploy", "new"),
	})
	ok(t, env, "install", image, "web", "-n", ns, "--wait=false")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
	harness.Eventually(t, harness.Patience, "the first phase to be written", func(ctx context.Context) error {
		return env.Client.Get(ctx, client.ObjectKeyFromObject(settings), settings)
	})
	late := legacy(t, env, ns, "late", "kubectl-create")
	for _, name := range []string{"late", "settings"} {
		harness.Edit(t, env, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, func(cm *corev1.ConfigMap) {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "ready", "new")
		})
	}
	harness.Eventually(t, harness.Patience, "the collision to be reported", func(ctx context.Context) error {
		r := run(t, env, "explain", "package/web", "-n", ns)
		if !strings.Contains(r.out, "exists already and nothing controls it") {
			return errors.New(r.out)
		}
		return nil
	})
	ok(t, env, "adopt", "cm/late", "--into", "web", "-n", ns, "--yes")
	env.WaitAvailable(t, ns, "web")
	require.Equal(t, state{UID: late, Controller: "ObjectDeployment web", Value: "new", Managed: true}, stateOf(t, env, ns, "late"))
}

// second installs a package that also contains the ConfigMap page.
func second(t *testing.T, env *harness.Env, ns string) string {
	t.Helper()
	image := env.Push(t, "handover-second:v1", harness.Files{
		"manifest.yaml": harness.Manifest("second", []string{"all"}, ""), "page.yaml": harness.ConfigMap("page", "all", "second"),
		"second.yaml": harness.ConfigMap("second", "all", "second"),
	})
	ok(t, env, "install", image, "second", "-n", ns, "--wait=false")
	return "second"
}

func releases(t *testing.T, env *harness.Env, ns string, page types.UID) {
	t.Helper()
	fails(t, env, []string{"would have no objects left"}, "release", "cm/settings", "cm/page", "cm/added", "-n", ns, "--yes")
	fails(t, env, []string{"does not belong to a package: it has no controller"}, "release", "cm/other", "-n", ns)
	fails(t, env, []string{"nothing was changed: confirm it with --yes"}, "release", "cm/page", "-n", ns)
	r := ok(t, env, "release", "cm/page", "-n", ns, "--dry-run")
	if !strings.Contains(r.out, "< ConfigMap handover/page\n") {
		t.Errorf("the plan is:\n%s", r.out)
	}
	r = ok(t, env, "release", "cm/page", "-n", ns, "--yes")
	if !strings.Contains(r.out, "package handover/web has released 1 object\n") {
		t.Errorf("release says:\n%s%s", r.out, r.err)
	}
	if n := len(env.Package(t, ns, "web").PackageSpec().Patches); n != 1 {
		t.Errorf("the package has %d patches", n)
	}
	// The other package has waited for the object, because it must not adopt it without permission.
	released := state{UID: page, Value: "new"}
	require.Equal(t, released, stateOf(t, env, ns, "page"), "the released object")
	ok(t, env, "adopt", "cm/page", "--into", "second", "-n", ns, "--yes")
	taken := state{UID: page, Controller: "ObjectDeployment second", Value: "second", Managed: true}
	require.Equal(t, taken, stateOf(t, env, ns, "page"), "the object of the other package")
	ok(t, env, "release", "cm/page", "-n", ns, "--yes")
	ok(t, env, "adopt", "cm/page", "--into", "web", "-n", ns, "--yes")
	taken.Controller, taken.Value = "ObjectDeployment web", "new"
	require.Equal(t, taken, stateOf(t, env, ns, "page"), "the object that is back")
	if n := len(env.Package(t, ns, "web").PackageSpec().Patches); n != 0 {
		t.Errorf("the package has %d patches", n)
	}
	keepsWhatItReleased(t, env, ns)
}

// keepsWhatItReleased checks that the deletion of a package leaves a released object.
func keepsWhatItReleased(t *testing.T, env *harness.Env, ns string) {
	t.Helper()
	ok(t, env, "release", "configmap/settings", "-n", ns, "--yes")
	ok(t, env, "delete", "web", "-n", ns)
	if s := stateOf(t, env, ns, "settings"); s.Controller != "" || s.Value != "new" {
		t.Errorf("the released object is %+v", s)
	}
	harness.Eventually(t, harness.Patience, "the object of the package to be deleted", func(ctx context.Context) error {
		err := env.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "added"}, &corev1.ConfigMap{})
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}
