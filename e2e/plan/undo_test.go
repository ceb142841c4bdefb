package plan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/preview"
)

// run runs kubectl package in this process.
func run(t *testing.T, env *harness.Env, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), append(args, "--kubeconfig", env.Kubeconfig()), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	return code, stdout.String(), stderr.String()
}

// A kind that nobody serves is named, with the phase that waits for it, and the plan
// goes on behind it.
func TestPlanOfAKindThatNobodyServes(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "unserved")
	image := env.Push(t, "unserved:v1", harness.Files{
		"manifest.yaml": harness.Manifest("unserved", []string{"first", "second", "third"}, ""),
		"first.yaml":    harness.ConfigMap("first", "first", "v1"),
		"second.yaml":   "apiVersion: nobody.example.com/v1\nkind: Gizmo\nmetadata:\n  name: gizmo\n  annotations: {package-operator.run/phase: second}\n",
		"third.yaml":    harness.ConfigMap("third", "third", "v1"),
	})
	code, out, errOut := plan(t, env, image, "-n", "unserved")
	for _, want := range []string{
		"✗ Gizmo unserved/gizmo  phase second\n        the API server does not serve nobody.example.com/v1 Gizmo", "+ ConfigMap unserved/third", "Refused: 2 to create, 1 refused",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if code != 1 || !strings.Contains(errOut, "would not be rolled out as planned: 1 refusal") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	var reached []bool
	for _, ph := range planOf(t, env, image, "-n", "unserved").Phases {
		reached = append(reached, ph.Reached)
	}
	if diff := cmp.Diff([]bool{true, true, false}, reached); diff != "" || t.Failed() {
		t.Errorf("reached (-want +got):\n%s\n%s", diff, out)
	}
}

// What an upgrade made anew is made anew by its rollback, too, although the package
// did not say so then; as its plan says.
func TestUndoOfAnObjectMadeAnew(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "anew")
	fixed := func(value, annotation string) harness.Files {
		return harness.Files{
			"manifest.yaml": harness.Manifest("anew", []string{"deploy"}, ""),
			"cm.yaml":       strings.Replace(harness.ConfigMap("anew", "deploy", value), "\ndata:\n", "\n"+annotation+"immutable: true\ndata:\n", 1),
		}
	}
	one := env.Push(t, "anew:v1", fixed("v1", ""))
	env.Create(t, harness.Package("anew", "anew", one))
	env.WaitAvailable(t, "anew", "anew")
	two := env.Push(t, "anew:v2", fixed("v2", "    package-operator.run/on-immutable: Recreate\n"))
	env.SetImage(t, "anew", "anew", two)
	awaitValue(t, env, "anew", "anew", "v2")
	env.WaitAvailable(t, "anew", "anew")
	if p := planOf(t, env, one, "-n", "anew"); p.Outcome != preview.OutcomeChanges || p.Summary.Replace != 1 {
		t.Errorf("the plan is %s: %s, %+v", p.Outcome, p.Summary, p.Refusals)
	}
	if code, out, errOut := run(t, env, "rollout", "undo", "package/anew", "-n", "anew", "--timeout", "60s"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	awaitValue(t, env, "anew", "anew", "v1")
}

// An undo that may lose data does nothing that was not confirmed, and its dry run
// shows what that is.
func TestUndoThatLosesData(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "lossy")
	files := harness.Files{"manifest.yaml": harness.Manifest("lossy", []string{"deploy"}, ""), "cm.yaml": harness.ConfigMap("lossy", "deploy", "v1")}
	env.Create(t, harness.Package("lossy", "lossy", env.Push(t, "lossy:v1", files)))
	env.WaitAvailable(t, "lossy", "lossy")
	more := files.Clone()
	more["cm.yaml"] = harness.ConfigMap("lossy", "deploy", "v2")
	more["claim.yaml"] = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lossy, annotations: {package-operator.run/phase: deploy}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	two := env.Push(t, "lossy:v2", more)
	env.SetImage(t, "lossy", "lossy", two)
	awaitValue(t, env, "lossy", "lossy", "v2")
	env.WaitAvailable(t, "lossy", "lossy")
	undo := func(args ...string) (int, string, string) {
		return run(t, env, append([]string{"rollout", "undo", "package/lossy", "-n", "lossy", "--timeout", "60s"}, args...)...)
	}
	const loss = "! PersistentVolumeClaim lossy/lossy  its volume is released"
	code, out, errOut := undo("--dry-run")
	if code != 0 || !strings.Contains(out, loss) || !strings.Contains(out, "revision 2 → 3") || !strings.Contains(out, "- PersistentVolumeClaim lossy/lossy") {
		t.Errorf("the dry run: %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut = undo(); code != 1 || !strings.Contains(errOut, loss) || !strings.Contains(errOut, "nothing was changed: confirm it by --yes") {
		t.Errorf("without --yes: %d\n%s%s", code, out, errOut)
	}
	if image := env.Package(t, "lossy", "lossy").PackageSpec().Image; image != two {
		t.Errorf("the image is %s", image)
	}
	if code, out, errOut = undo("--yes"); code != 0 {
		t.Errorf("with --yes: %d\n%s%s", code, out, errOut)
	}
	awaitValue(t, env, "lossy", "lossy", "v1")
}

// guarded is a package whose policy wants a label on the ConfigMaps of its namespace.
func guarded(labelled bool, value string) harness.Files {
	files := harness.Files{
		"manifest.yaml": harness.Manifest("guarded", []string{"guard", "work"}, ""),
		"cm.yaml":       strings.Replace(harness.ConfigMap("guarded", "work", value), "  annotations:", "  namespace: guarded\n  annotations:", 1),
	}
	if labelled {
		files["cm.yaml"] = strings.Replace(files["cm.yaml"], "  annotations:", "  labels: {team: shop}\n  annotations:", 1)
		files["policy.yaml"] = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: guarded.plan.example.com
  annotations: {package-operator.run/phase: guard}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: guarded}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  validations:
  - {expression: "object.metadata.?labels.?team.hasValue() || object.metadata.name == 'kube-root-ca.crt'", message: a team is missing}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: guarded.plan.example.com
  annotations: {package-operator.run/phase: guard}
spec:
  policyName: guarded.plan.example.com
  validationActions: [Deny]
`
	}
	return files
}

// enforced waits until the API server goes by the policy.
func enforced(t *testing.T, env *harness.Env) {
	t.Helper()
	harness.Eventually(t, 60*time.Second, "the policy to be enforced", func(ctx context.Context) error {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "guarded", Name: "other"}}
		if err := env.Client.Create(ctx, other, client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
}

// A rollback that a policy of the package itself refuses is said to be so, by plan
// and by explain, with what to do; and that is all that there is to do.
func TestRollbackThatItsOwnPolicyRefuses(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "guarded")
	one := env.Push(t, "guarded:v1", guarded(false, "v1"))
	env.Create(t, harness.ClusterPackage("guarded", one))
	env.WaitAvailable(t, "", "guarded")
	two := env.Push(t, "guarded:v2", guarded(true, "v2"))
	env.SetImage(t, "", "guarded", two)
	awaitValue(t, env, "guarded", "guarded", "v2")
	enforced(t, env)
	const way = "kubectl delete validatingadmissionpolicybinding guarded.plan.example.com"
	code, out, errOut := plan(t, env, one, "clusterpackage/guarded")
	if code != 1 || !strings.Contains(out, "a team is missing") || !strings.Contains(out, way) {
		t.Errorf("the plan: %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := run(t, env, "rollout", "undo", "clusterpackage/guarded", "--wait=false"); code != 0 {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	harness.Eventually(t, 60*time.Second, "explain to say what to do", func(context.Context) error {
		if _, out, _ = run(t, env, "explain", "clusterpackage/guarded"); !strings.Contains(out, "Do     ValidatingAdmissionPolicyBinding guarded.plan.example.com is this package's own") || !strings.Contains(out, way) {
			return errors.New(out)
		}
		return nil
	})
	if out, err := env.Kubectl(t.Context(), strings.Fields(way)[1:]...); err != nil {
		t.Fatal(err, out)
	}
	awaitValue(t, env, "guarded", "guarded", "v1")
	env.WaitAvailable(t, "", "guarded")

	// Or all of it by one command.
	env.SetImage(t, "", "guarded", two)
	awaitValue(t, env, "guarded", "guarded", "v2")
	enforced(t, env)
	if code, out, errOut := run(t, env, "rollout", "undo", "clusterpackage/guarded", "--yes", "--timeout", "60s"); code != 0 || !strings.Contains(errOut, "ValidatingAdmissionPolicyBinding guarded.plan.example.com deleted") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	cm := &corev1.ConfigMap{}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: "guarded", Name: "guarded"}, cm); err != nil || cm.Labels["team"] != "" {
		t.Errorf("%v, %v", cm.Labels, err)
	}
}
