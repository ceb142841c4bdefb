package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// Commands plan, activate and reject a waiting revision, and activate an earlier one again.
func TestActivationCommands(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const namespace = "activate"
	env.Namespace(t, namespace)
	first, second := env.Push(t, "activate:1", release("one", 0)), env.Push(t, "activate:2", release("two", 0))
	pkg := harness.Package(namespace, "notes", first)
	pkg.Spec.RevisionActivationPolicy = corev1alpha1.RevisionActivationManual
	env.Create(t, pkg)
	in := func(args ...string) []string { return append(args, "-n", namespace) }
	fails := func(text string, args ...string) {
		t.Helper()
		if got := run(t, env, in(args...)...); got.code != 1 || !strings.Contains(got.err, text) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	says := func(text string, args ...string) {
		t.Helper()
		if got := ok(t, env, in(args...)...); !strings.Contains(got.out, text) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	waits := func(number int64) {
		t.Helper()
		dep := &corev1alpha1.ObjectDeployment{}
		dep.Namespace, dep.Name = namespace, "notes"
		harness.Await(t, env, harness.Patience, dep, fmt.Sprintf("revision %d to wait", number), func(d *corev1alpha1.ObjectDeployment) error {
			c := meta.FindStatusCondition(d.Status.Conditions, corev1alpha1.ConditionAwaitingActivation)
			if c == nil || c.ObservedGeneration != d.Generation || !strings.Contains(c.Message, fmt.Sprintf("Revision %d ", number)) {
				return fmt.Errorf("%+v", d.Status)
			}
			return nil
		})
	}
	waits(1)
	fails("kubectl package rollout activate package/notes --namespace activate --revision 1", "rollout", "status", "notes")
	says("ConfigMap activate/notes", "plan", "package/notes", "--revision", "1")
	says("package activate/notes successfully rolled out: revision 1", "rollout", "activate", "notes")
	fails("is already in charge", "rollout", "activate", "notes", "--revision", "1")
	fails("no revision of package activate/notes awaits its activation", "rollout", "activate", "notes")

	says(`"one" → "two"`, "plan", second, "package/notes")
	env.SetImage(t, namespace, "notes", second)
	waits(2)
	says(`"one" → "two"`, "plan", "package/notes", "--revision", "2")
	says("revision 2 of package activate/notes is rejected", "rollout", "reject", "notes")
	harness.Await(t, env, harness.Patience, pkg, "the rejection", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionReady, "False", corev1alpha1.ReasonRejected)
	})
	fails("its content was rejected", "rollout", "activate", "notes", "--revision", "2")
	ok(t, env, in("retry", "notes", "--wait=false")...)
	waits(2)
	says("package activate/notes successfully rolled out: revision 3", "rollout", "activate", "notes", "--revision", "2")
	if got := valueOf(t, env, namespace, "notes"); got != "two" {
		t.Errorf("the value is %q", got)
	}
	says("package activate/notes successfully rolled out: revision 4", "rollout", "activate", "notes", "--revision", "1")
	if got := valueOf(t, env, namespace, "notes"); got != "one" {
		t.Errorf("the value is %q", got)
	}

	harness.Edit(t, env, pkg, func(p *corev1alpha1.Package) { p.Spec.RevisionActivationPolicy = "" })
	says("revision 5", "rollout", "status", "notes")
	fails("revisionActivationPolicy: Automatic", "rollout", "activate", "notes", "--revision", "4")
	ok(t, env, in("delete", "notes")...)
}
