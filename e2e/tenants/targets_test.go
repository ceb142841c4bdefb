package tenants_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/hostile"
)

// memory is the limit of config/manager.
const memory = 512 << 20

// attack is a target, and the expected status of a package in it.
type attack struct {
	attack hostile.Attack
	// reason and message are expected in TargetConnected.
	reason, message string
	// manifest is further YAML of the package's manifest.
	manifest string
	packages int
	// writes means that objects are written to the target.
	writes bool
	deep   bool
}

var attacks = map[string]attack{
	"watch-bomb":       {attack: hostile.WatchBomb(1 << 30), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "an object of the target has more than"},
	"list-bomb":        {attack: hostile.Pages(1, 10, 60<<20), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "an object of the target has more than"},
	"values":           {attack: hostile.Nodes(2 << 20), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "values"},
	"discovery":        {attack: hostile.Discovery(200_000), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "an answer of the target has more than"},
	"version-503-once": {attack: hostile.VersionOnce(2), reason: corev1alpha1.ReasonTargetConnected, writes: true},
	"reset":            {attack: hostile.Reset(), reason: corev1alpha1.ReasonTargetConnected},
	"identities":       {attack: hostile.Identities(), reason: corev1alpha1.ReasonTargetConnected},
	"trickle":          {attack: hostile.Trickle(time.Second), reason: corev1alpha1.ReasonTargetUnreachable, message: "no answer within 10s"},
	"redirect":         {attack: hostile.Redirect(), reason: corev1alpha1.ReasonTargetUnreachable, message: "the server that answers is not the API server"},
	"schema-bomb": {
		attack: hostile.SchemaBomb(), reason: corev1alpha1.ReasonTargetConnected, packages: 17,
		manifest: "  dependencies:\n  - name: maps\n    api: {apiVersion: v1, kind: ConfigMap, fieldPaths: [x]}\n",
	},
	"watch-names": {attack: hostile.WatchNames(4000, 0), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "needs more memory than the targets of the namespace", deep: true},
	"list-names":  {attack: hostile.Pages(500, 4000, 0), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "needs more memory than the targets of the namespace"},
	"pages":       {attack: hostile.Pages(1, 10, 10), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "pages", deep: true},
	"large-pages": {attack: hostile.Pages(500, 200, 15<<10), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "needs more memory than the targets of the namespace", deep: true},
	"events":      {attack: hostile.WatchNames(200, 2<<10), reason: corev1alpha1.ReasonTargetLimitExceeded, message: "needs more memory than the targets of the namespace", deep: true},
}

// A tenant's own server is a target that attacks the manager. The manager stays within its memory
// limit, reports the fault, and installs other tenants' packages meanwhile.
func TestTargets(t *testing.T) {
	t.Parallel()
	e := harness.Lend(t)
	m := e.StartManager(t, "--allow-local-targets", "--pace=0.1")
	control := e.Push(t, "targets-control:v1", harness.Phased("control", 1, 3))
	var took []time.Duration
	t.Run("attacks", func(t *testing.T) {
		for name, a := range attacks {
			if a.deep && !harness.Deep() {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				targetAttacks(t, e, name, a)
			})
		}
		t.Run("control", func(t *testing.T) {
			for i := range 5 {
				namespace := fmt.Sprintf("targets-control-%d", i)
				e.Namespace(t, namespace)
				began := time.Now()
				e.Create(t, harness.Package(namespace, "control", control))
				e.WaitAvailable(t, namespace, "control")
				took = append(took, time.Since(began))
			}
		})
	})
	slices.Sort(took)
	t.Logf("packages of others took %s; the manager had %d MiB at most", took, m.Peak(t)>>20)
	if m.Exited() {
		t.Fatal("the manager has ended")
	}
	if peak := m.Peak(t); peak > memory {
		t.Errorf("the manager had %d MiB", peak>>20)
	}
}

func targetAttacks(t *testing.T, e *harness.Env, name string, a attack) {
	t.Helper()
	u := newTenant(t, e, "")
	s := hostile.New(t, a.attack)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "target"}, Data: map[string][]byte{"value": s.Kubeconfig()}}
	u.create(t, secret)
	files := harness.Phased(name, 1, 2)
	files["manifest.yaml"] = harness.Manifest(name, []string{"phase-00"}, a.manifest)
	image := e.Push(t, "targets-"+name+":v1", files)
	for i := range max(a.packages, 1) {
		pkg := harness.Package(u.namespace, fmt.Sprintf("app-%d", i), image)
		pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: secret.Name}}
		u.create(t, pkg)
	}
	for i := range max(a.packages, 1) {
		awaitTarget(t, u, fmt.Sprintf("app-%d", i), a)
	}
	if a.writes {
		harness.Eventually(t, harness.Patience, "objects in the target", func(context.Context) error {
			if s.Objects() < 2 {
				return fmt.Errorf("%d objects", s.Objects())
			}
			return nil
		})
	}
}

// awaitTarget waits until a Package reports the attack of its target.
func awaitTarget(t *testing.T, u *tenant, name string, a attack) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "the package to report the state of its target", func(ctx context.Context) error {
		pkg := &corev1alpha1.Package{}
		if err := u.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, pkg); err != nil {
			return err
		}
		c := meta.FindStatusCondition(pkg.Status.Conditions, corev1alpha1.ConditionTargetConnected)
		if c == nil || c.Reason != a.reason || !strings.Contains(c.Message, a.message) {
			return fmt.Errorf("conditions %+v", pkg.Status.Conditions)
		}
		if strings.Contains(c.Message, "secret-of-the-target") {
			t.Errorf("quoted: %q", c.Message)
		}
		return nil
	})
}
