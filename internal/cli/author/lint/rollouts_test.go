package lint

import (
	"fmt"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// probed returns a package of one workload, with one entry of probes for it.
func probed(kind, spec, checks string) loader.Files {
	return files(fmt.Sprintf(`
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: shop}
spec:
  scopes: [Namespaced]
  phases: [{name: deploy}]
  availabilityProbes:
%s
-- web.yaml
apiVersion: apps/v1
kind: %s
metadata: {name: web, annotations: {package-operator.run/phase: deploy}}
spec:
  selector: {matchLabels: {app: web}}
  %s
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:v1"}]}
`, "  "+strings.ReplaceAll(strings.TrimSpace(checks), "\n", "\n  "), kind, strings.ReplaceAll(spec, "\n", "\n  ")))
}

// entry is an entry of availabilityProbes for a kind.
func entry(kind string, checks ...string) string {
	return fmt.Sprintf("- selector: {kind: {group: apps, kind: %s}}\n  probes: [%s]", kind, strings.Join(checks, ", "))
}

const (
	available = `{condition: {type: Available, status: "True"}}`
	// whole is common in packages for Package Operator.
	whole      = "{fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}}"
	allReady   = "{fieldsEqual: {fieldA: .status.readyReplicas, fieldB: .status.replicas}}"
	allUpdated = "{fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .spec.replicas}}"
	noSurge    = "replicas: 1\nstrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"
	noneLeft   = "replicas: 4\nstrategy: {rollingUpdate: {maxUnavailable: 100%}}"
)

// The rule warns if and only if a probe is true during a failing rollout. Tests in e2e/rollout
// check its assumptions about controllers.
func TestProbeMissesFailedRollout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason, kind, spec string
		checks             []string
		want               string // of the status at which they are true; none if they never are
	}{
		{"the old pod is available", "Deployment", "replicas: 1", []string{available}, "availableReplicas 1, readyReplicas 1, replicas 1"},
		{"replicas has a default", "Deployment", "", []string{available}, "replicas 1"},
		{"with a surge the old pods count twice", "Deployment", "replicas: 3", []string{available, allUpdated, "{fieldsEqual: {fieldA: .status.readyReplicas, fieldB: .spec.replicas}}"}, ""},
		{"one of one is updated, and another one available", "Deployment", "replicas: 1",
			[]string{available, allUpdated, "{cel: {rule: self.status.availableReplicas >= self.spec.replicas, message: unavailable}}"},
			"availableReplicas 1, readyReplicas 1, replicas 2, unavailableReplicas 1, updatedReplicas 1"},
		{"a surge makes the numbers differ", "Deployment", "replicas: 1", []string{available, whole}, ""},
		{"no more than a quarter is removed before new pods are ready", "Deployment", "replicas: 4", []string{available, whole}, ""},
		{"one of one can be unavailable", "Deployment", noSurge, []string{available, whole}, "replicas 1, unavailableReplicas 1, updatedReplicas 1"},
		{"all of them can be unavailable", "Deployment", noneLeft, []string{available, whole}, "replicas 1, unavailableReplicas 1, updatedReplicas 1"},
		{"and the probe requires them", "Deployment", noneLeft, []string{available, whole, "{fieldsEqual: {fieldA: .status.availableReplicas, fieldB: .spec.replicas}}"}, ""},
		{"recreated pods", "Deployment", "replicas: 1\nstrategy: {type: Recreate}", []string{available, whole}, ""},
		{"recreated pods, and availability is not asked", "Deployment", "replicas: 1\nstrategy: {type: Recreate}", []string{whole}, "updatedReplicas 1"},
		{"no pod to replace", "Deployment", "replicas: 0", []string{available}, ""},
		{"jq", "Deployment", "replicas: 1", []string{`{fieldsEqual: {fieldA: ".status.availableReplicas // 0", fieldB: .spec.replicas}}`}, "replicas 1"},
		{"replicas ready before", "StatefulSet", "serviceName: web", []string{allReady}, "availableReplicas 1, currentReplicas 1, readyReplicas 1, replicas 1"},
		{"one of two", "StatefulSet", "serviceName: web\nreplicas: 2", []string{"{fieldsEqual: {fieldA: .status.readyReplicas, fieldB: .spec.replicas}}", allUpdated}, ""},
		{"updated but not ready", "StatefulSet", "serviceName: web\nreplicas: 1", []string{whole}, "replicas 1, updatedReplicas 1"},
		{"only replicas above the partition are replaced", "StatefulSet", "serviceName: web\nreplicas: 2\nupdateStrategy: {rollingUpdate: {partition: 2}}", []string{allReady}, ""},
		{"no pod is replaced", "StatefulSet", "serviceName: web\nreplicas: 2\nupdateStrategy: {type: OnDelete}", []string{allReady}, ""},
		{"old pods are ready", "DaemonSet", "", []string{"{fieldsEqual: {fieldA: .status.numberReady, fieldB: .status.desiredNumberScheduled}}"}, "numberReady 1"},
		{"new pods are there", "DaemonSet", "", []string{"{fieldsEqual: {fieldA: .status.updatedNumberScheduled, fieldB: .status.desiredNumberScheduled}}"}, "updatedNumberScheduled 1"},
		{"both", "DaemonSet", "", []string{"{fieldsEqual: {fieldA: .status.updatedNumberScheduled, fieldB: .status.desiredNumberScheduled}}", "{fieldsEqual: {fieldA: .status.numberAvailable, fieldB: .status.desiredNumberScheduled}}"}, ""},
		{"a surge hides new pods behind old ones", "DaemonSet", "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", []string{"{fieldsEqual: {fieldA: .status.updatedNumberScheduled, fieldB: .status.desiredNumberScheduled}}"}, ""},
	}
	for _, test := range tests {
		got := found(t, probed(test.kind, test.spec, entry(test.kind, test.checks...)), Options{}, "probe-misses-failed-rollout")
		if (len(got) > 0) != (test.want != "") || len(got) > 0 && !strings.HasSuffix(got[0], test.want) {
			t.Errorf("%s: %s: got %q, want %q", test.kind, test.reason, got, test.want)
		}
	}
}

// The rule accepts the recipes with every strategy.
func TestRecipesNoticeFailedRollouts(t *testing.T) {
	t.Parallel()
	specs := map[string][]string{
		"Deployment":  {"", "replicas: 0", "replicas: 7", noSurge, noneLeft, "replicas: 2\nstrategy: {type: Recreate}"},
		"StatefulSet": {"serviceName: web", "serviceName: web\nreplicas: 5\nupdateStrategy: {rollingUpdate: {partition: 3}}", "serviceName: web\nreplicas: 3\npodManagementPolicy: Parallel"},
		"DaemonSet":   {"", "updateStrategy: {rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}}", "updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}"},
	}
	for kind, all := range specs {
		_, recipe := probes.Recipe(kind)
		for _, spec := range all {
			if got := found(t, probed(kind, spec, recipe), Options{}, "probe-misses-failed-rollout"); len(got) > 0 {
				t.Errorf("%s %q: %q", kind, spec, got)
			}
		}
	}
	for _, folder := range []string{"operator/cluster", "operator/namespaced", "format"} {
		files, err := loader.ReadFolder("../../../../examples/" + folder)
		require.NoError(t, err)
		if got := found(t, files, Options{}, "probe-misses-failed-rollout"); len(got) > 0 {
			t.Errorf("%s: %q", folder, got)
		}
	}
}
