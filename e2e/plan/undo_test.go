package plan_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
)

// A rollback recreates objects that the upgrade recreated, although the earlier package lacks the
// annotation. The plan shows that.
func TestUndoOfARecreate(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "recreated")
	fixed := func(value, annotation string) harness.Files {
		return harness.Files{
			"manifest.yaml": harness.Manifest("recreated", []string{"deploy"}, ""),
			"cm.yaml":       strings.Replace(harness.ConfigMap("recreated", "deploy", value), "\ndata:\n", "\n"+annotation+"immutable: true\ndata:\n", 1),
		}
	}
	one, _ := upgradePackage(t, env, harness.Package("recreated", "recreated", ""), fixed("v1", ""), fixed("v2", "    package-operator.run/on-immutable: Recreate\n"))
	if p := planOf(t, env, one, "-n", "recreated"); p.Outcome != dryrun.OutcomeChanges || p.Summary.Replace != 1 {
		t.Errorf("the plan is %s: %s, %+v", p.Outcome, p.Summary, p.Refusals)
	}
	if code, out, errOut := run(t, env, "rollout", "undo", "package/recreated", "-n", "recreated", "--timeout", patience); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	awaitValue(t, env, "recreated", "recreated", "v1")
}

// An undo that can lose data needs confirmation, and its dry run lists the loss.
func TestUndoThatLosesData(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "lossy")
	files := harness.Files{"manifest.yaml": harness.Manifest("lossy", []string{"deploy"}, ""), "cm.yaml": harness.ConfigMap("lossy", "deploy", "v1")}
	more := files.Clone()
	more["cm.yaml"] = harness.ConfigMap("lossy", "deploy", "v2")
	more["claim.yaml"] = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lossy, annotations: {package-operator.run/phase: deploy}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	_, two := upgradePackage(t, env, harness.Package("lossy", "lossy", ""), files, more)
	undo := func(args ...string) (int, string, string) {
		return run(t, env, append([]string{"rollout", "undo", "package/lossy", "-n", "lossy", "--timeout", patience}, args...)...)
	}
	const loss = "! PersistentVolumeClaim lossy/lossy  its volume is released"
	code, out, errOut := undo("--dry-run")
	if code != 0 || !strings.Contains(out, loss) || !strings.Contains(out, "revision 2 → 3") || !strings.Contains(out, "- PersistentVolumeClaim lossy/lossy") {
		t.Errorf("the dry run: %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut = undo(); code != 1 || !strings.Contains(errOut, loss) || !strings.Contains(errOut, "nothing was changed: confirm it with --yes") {
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
