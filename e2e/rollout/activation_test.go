package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// valued returns a package of ConfigMaps with a value. A ConfigMap whose value ends with a
// question mark never becomes ready.
func valued(name, value string, phases, n int) harness.Files {
	files := harness.Phased(name, phases, n)
	for path, content := range files {
		files[path] = strings.ReplaceAll(content, `value: "v1"`, `value: "`+value+`"`)
	}
	files["manifest.yaml"] = harness.Manifest(name, phaseNames(phases), `
  version: `+strings.TrimPrefix(strings.TrimSuffix(value, "?"), "v")+`.0.0
  availabilityProbes:
  - selector: {kind: {kind: ConfigMap}}
    probes:
    - cel: {rule: '!self.data.value.endsWith("?")', message: the value is in question}`)
	return files
}

func phaseNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("phase-%02d", i))
	}
	return names
}

// setOf returns the ObjectSet of a package with a number.
func setOf(t *testing.T, env *harness.Env, namespace string, number int64) *corev1alpha1.ObjectSet {
	t.Helper()
	list := &corev1alpha1.ObjectSetList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		if list.Items[i].Spec.Revision == number {
			return &list.Items[i]
		}
	}
	t.Fatalf("there is no revision %d in %s", number, namespace)
	return nil
}

func activate(t *testing.T, env *harness.Env, namespace string, number int64) {
	t.Helper()
	set := setOf(t, env, namespace, number)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifecycleState":"Active"}}`))
	require.NoError(t, env.Client.Patch(t.Context(), set, patch))
}

// waitRevision waits until a revision of a package is in charge and Ready has a reason.
func waitRevision(t *testing.T, env *harness.Env, namespace, name string, number int64, reason string) *corev1alpha1.Package {
	t.Helper()
	pkg := &corev1alpha1.Package{}
	pkg.Namespace, pkg.Name = namespace, name
	return harness.Await(t, env, harness.Patience, pkg, fmt.Sprintf("revision %d, %s", number, reason), func(p *corev1alpha1.Package) error {
		ready := meta.FindStatusCondition(p.Status.Conditions, corev1alpha1.ConditionReady)
		if p.Status.ObservedGeneration != p.Generation || p.Status.Revision != number || ready == nil || ready.Reason != reason || ready.ObservedGeneration != p.Generation {
			return fmt.Errorf("revision %d, %+v", p.Status.Revision, ready)
		}
		return nil
	})
}

func is(pkg *corev1alpha1.Package, typ string) bool {
	return meta.IsStatusConditionTrue(pkg.Status.Conditions, typ)
}

// configMaps returns the package's ConfigMaps of a namespace by name.
func configMaps(t *testing.T, env *harness.Env, namespace string) map[string]corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"package-operator.run/cache": "True"}))
	found := map[string]corev1.ConfigMap{}
	for _, cm := range list.Items {
		found[cm.Name] = cm
	}
	return found
}

func values(t *testing.T, env *harness.Env, namespace string) []string {
	t.Helper()
	var found []string
	for _, cm := range configMaps(t, env, namespace) {
		if value := cm.Data["value"]; !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return found
}

// With the policy Manual, a new revision waits without writing any object, and the current one
// stays in charge. The new one takes over when a user activates it. A revision in the history can
// be activated as well, without rendering.
func TestActivation(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const namespace = "activation"
	env.Namespace(t, namespace)
	one, two := env.Push(t, "activation:1", valued("activation", "v1", 3, 4)), env.Push(t, "activation:2", valued("activation", "v2", 3, 4))
	pkg := harness.Package(namespace, "shop", one)
	pkg.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual
	env.Create(t, pkg)
	p := waitRevision(t, env, namespace, "shop", 0, corev1alpha1.ReasonAwaitingActivation)
	if p.Status.WaitingRevision == "" || p.Status.CurrentRevision != "" || is(p, corev1alpha1.ConditionAvailable) || is(p, corev1alpha1.ConditionProgressing) {
		t.Errorf("no object is installed yet: %+v", p.Status)
	}
	if maps := configMaps(t, env, namespace); len(maps) > 0 {
		t.Fatalf("%d objects of a revision that waits", len(maps))
	}
	activate(t, env, namespace, 1)
	p = waitRevision(t, env, namespace, "shop", 1, corev1alpha1.ReasonIdle)
	if p.Status.CurrentVersion != "1.0.0" || p.Status.CurrentImage != one || p.Status.WaitingRevision != "" || is(p, corev1alpha1.ConditionAwaitingActivation) {
		t.Errorf("1.0.0 is in charge: %+v", p.Status)
	}

	env.Settle(t, namespace)
	journal := env.Journal(t)
	env.SetImage(t, namespace, "shop", two)
	p = waitRevision(t, env, namespace, "shop", 1, corev1alpha1.ReasonAwaitingActivation)
	if !is(p, corev1alpha1.ConditionAvailable) || p.Status.CurrentVersion != "1.0.0" || p.Status.WaitingRevision != setOf(t, env, namespace, 2).Name {
		t.Errorf("1.0.0 stays in charge: %+v", p.Status)
	}
	c := meta.FindStatusCondition(p.Status.Conditions, corev1alpha1.ConditionAwaitingActivation)
	if c == nil || !strings.Contains(c.Message, "Revision 2 (2.0.0, sha256:") || !strings.Contains(c.Message, "kubectl package rollout activate package/shop --namespace activation --revision 2") {
		t.Errorf("AwaitingActivation is %+v", c)
	}
	asked := journal.Rest(t, namespace)
	// If this took longer than the interval of its statuses, the Package also reported progress.
	if most := 6 + int(asked[len(asked)-1].Done.Sub(asked[0].Received)/limits.PackageStatusInterval); len(asked) > most {
		t.Errorf("a waiting upgrade took %d requests:%s", len(asked), harness.Lines(asked))
	}
	if now := values(t, env, namespace); !slices.Equal(now, []string{"v1"}) {
		t.Errorf("while revision 2 waits, values are %v", now)
	}
	drifted := &corev1.ConfigMap{}
	drifted.Namespace, drifted.Name = namespace, "activation-00-000"
	harness.Edit(t, env, drifted, func(cm *corev1.ConfigMap) { cm.Data["value"] = "drift" })
	harness.Await(t, env, harness.Patience, drifted, "the drift to be corrected", func(cm *corev1.ConfigMap) error {
		if cm.Data["value"] != "v1" {
			return fmt.Errorf("the value is %s", cm.Data["value"])
		}
		return nil
	})

	activate(t, env, namespace, 2)
	waitRevision(t, env, namespace, "shop", 2, corev1alpha1.ReasonIdle)
	waitArchived(t, env, namespace, 1)
	activate(t, env, namespace, 1)
	p = waitRevision(t, env, namespace, "shop", 3, corev1alpha1.ReasonAwaitingActivation)
	if now := values(t, env, namespace); !slices.Equal(now, []string{"v1"}) || p.Status.CurrentVersion != "1.0.0" || len(p.Status.WaitingRevision) == 0 {
		t.Errorf("after the activation of revision 1 values are %v: %+v", now, p.Status)
	}
	sets := &corev1alpha1.ObjectSetList{}
	if err := env.Client.List(t.Context(), sets, client.InNamespace(namespace)); err != nil || len(sets.Items) != 2 {
		t.Errorf("%d revisions, %v: an activation creates none", len(sets.Items), err)
	}

	harness.Edit(t, env, p, func(p *corev1alpha1.Package) { p.Spec.RevisionActivationPolicy = "" })
	waitRevision(t, env, namespace, "shop", 4, corev1alpha1.ReasonIdle)
	waitArchived(t, env, namespace, 3)
	activate(t, env, namespace, 3)
	waitArchived(t, env, namespace, 3)
	if now := values(t, env, namespace); !slices.Equal(now, []string{"v2"}) {
		t.Errorf("under Automatic values are %v", now)
	}
}

func waitArchived(t *testing.T, env *harness.Env, namespace string, number int64) {
	t.Helper()
	harness.Await(t, env, harness.Patience, setOf(t, env, namespace, number), fmt.Sprintf("revision %d to be history", number), func(s *corev1alpha1.ObjectSet) error {
		if s.Spec.LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived || !meta.IsStatusConditionTrue(s.Status.Conditions, corev1alpha1.ConditionArchived) {
			return fmt.Errorf("%s, %+v", s.Spec.LifecycleState, s.Status.Conditions)
		}
		return nil
	})
}

// With onDeadline: Rollback a broken upgrade gives way to the last revision that succeeded, and its
// content is not tried again; other content is, at once.
func TestRollback(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const namespace = "rollback"
	env.Namespace(t, namespace)
	const deadline, never = 3, 600 // rollouts that are to succeed have time
	broken := valued("rollback", "v2?", 5, 10)
	broken["phase-00.yaml"] += `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  annotations: {package-operator.run/phase: phase-00}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`
	one, bad := env.Push(t, "rollback:1", valued("rollback", "v1", 5, 10)), env.Push(t, "rollback:bad", broken)
	good := env.Push(t, "rollback:2", valued("rollback", "v3", 5, 10))
	pkg := harness.Package(namespace, "shop", one)
	pkg.Spec.OnDeadline, pkg.Spec.ProgressDeadlineSeconds = corev1alpha1.DeadlineRollback, new(int32(never))
	env.Create(t, pkg)
	waitRevision(t, env, namespace, "shop", 1, corev1alpha1.ReasonIdle)

	env.SetImage(t, namespace, "shop", bad)
	dep := &corev1alpha1.ObjectDeployment{}
	dep.Namespace, dep.Name = namespace, "shop"
	harness.Await(t, env, harness.Patience, dep, "to wait for its first phase, whose objects all exist", func(d *corev1alpha1.ObjectDeployment) error {
		if d.Status.Revision != 2 || len(d.Status.Blocking) == 0 || !strings.Contains(d.Status.Blocking[0].Message, "the value is in question") {
			return fmt.Errorf("revision %d waits for %+v", d.Status.Revision, d.Status.Blocking)
		}
		return env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data"}, &corev1.PersistentVolumeClaim{})
	})
	harness.Edit(t, env, pkg, func(p *corev1alpha1.Package) { p.Spec.ProgressDeadlineSeconds = new(int32(deadline)) })
	harness.Await(t, env, harness.Patience, dep, "the content to be rejected", func(d *corev1alpha1.ObjectDeployment) error {
		if len(d.Status.Rejected) == 0 {
			return fmt.Errorf("revision %d", d.Status.Revision)
		}
		return nil
	})
	p := waitRevision(t, env, namespace, "shop", 3, corev1alpha1.ReasonRolledBack)
	if !is(p, corev1alpha1.ConditionAvailable) || !is(p, corev1alpha1.ConditionRolledBack) || !is(p, corev1alpha1.ConditionStalled) || p.Status.CurrentVersion != "1.0.0" {
		t.Errorf("after the rollback: %+v", p.Status)
	}
	rejected := dep.Status.Rejected[0]
	if rejected.Reason != corev1alpha1.ReasonProgressDeadlineExceeded || rejected.Version != "2.0.0" || !strings.HasPrefix(rejected.Digest, "sha256:") || !strings.Contains(rejected.Message, "ConfigMap") {
		t.Errorf("rejected: %+v", rejected)
	}
	if now := values(t, env, namespace); !slices.Equal(now, []string{"v1"}) {
		t.Errorf("after the rollback values are %v", now)
	}
	waitArchived(t, env, namespace, 2)
	claim := &corev1.PersistentVolumeClaim{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data"}, claim); err != nil || len(claim.OwnerReferences) > 0 || claim.DeletionTimestamp != nil ||
		!slices.Equal(rejected.Released, []string{"PersistentVolumeClaim data"}) {
		t.Errorf("the claim was not released: %v, %+v; %v", err, claim.ObjectMeta, rejected.Released)
	}

	// No second try, also of a spec that renders the same.
	harness.Edit(t, env, p, func(p *corev1alpha1.Package) { p.Spec.ProgressDeadlineSeconds = new(int32(deadline + 1)) })
	if p = waitRevision(t, env, namespace, "shop", 3, corev1alpha1.ReasonRolledBack); p.Status.Revision != 3 {
		t.Errorf("a second try: revision %d", p.Status.Revision)
	}
	harness.Edit(t, env, p, func(p *corev1alpha1.Package) {
		p.Annotations = map[string]string{corev1alpha1.RetryAnnotation: "again"}
	})
	waitRevision(t, env, namespace, "shop", 5, corev1alpha1.ReasonRolledBack)
	harness.Edit(t, env, p, func(p *corev1alpha1.Package) { p.Spec.Image, p.Spec.ProgressDeadlineSeconds = good, new(int32(never)) })
	waitRevision(t, env, namespace, "shop", 6, corev1alpha1.ReasonIdle)
	if now := values(t, env, namespace); !slices.Equal(now, []string{"v3"}) {
		t.Errorf("after other content values are %v", now)
	}
}
