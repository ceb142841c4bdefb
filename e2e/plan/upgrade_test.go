package plan_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/test/require"
)

// operator returns a package with one object of each sort that an upgrade can break.
func operator() harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("gauge-operator", []string{"crds", "rbac", "deploy", "workers"}, `  version: 1.0.0
  availabilityProbes:
  - selector:
      kind:
        group: apps
        kind: Deployment
    probes:
    - condition:
        type: Available
        status: "True"
`),
		"crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gauges.plan.example.com
  annotations:
    package-operator.run/phase: crds
spec:
  group: plan.example.com
  scope: Namespaced
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              unit: {type: string}
  - name: v1
    served: true
    storage: true
    schema: *schema
`,
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: gauges\n  annotations:\n    package-operator.run/phase: crds\n",
		"rbac.yaml": `apiVersion: v1
kind: ServiceAccount
metadata:
  name: gauge-operator
  namespace: gauges
  annotations:
    package-operator.run/phase: rbac
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: gauge-operator
  annotations:
    package-operator.run/phase: rbac
rules:
- apiGroups: [plan.example.com]
  resources: [gauges]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: gauge-operator
  annotations:
    package-operator.run/phase: rbac
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: gauge-operator
subjects:
- kind: ServiceAccount
  name: gauge-operator
  namespace: gauges
`,
		"deploy.yaml":  workload("gauge-operator", "deploy", "registry.example.com/gauge:v1", "gauge-operator"),
		"secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata:\n  name: gauge\n  namespace: gauges\n  annotations:\n    package-operator.run/phase: deploy\nstringData:\n  password: before\n",
		"old.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gauge-legacy\n  namespace: gauges\n  annotations:\n    package-operator.run/phase: deploy\ndata:\n  unit: bar\n",
		"kept.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gauge-calibration\n  namespace: gauges\n  annotations:\n    package-operator.run/phase: deploy\n    package-operator.run/deletion-policy: Keep\ndata:\n  zero: \"0.2\"\n",
		"workers.yaml": workload("gauge-worker", "workers", "registry.example.com/worker:v1", "gauge-worker"),
	}
}

func workload(name, phase, image, label string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  namespace: gauges
  annotations:
    package-operator.run/phase: %s
spec:
  replicas: 1
  selector:
    matchLabels: {app: %s}
  template:
    metadata:
      labels: {app: %[3]s}
    spec:
      containers:
      - name: main
        image: %s
`, name, phase, label, image)
}

// upgraded changes an image, drops a version of the CRD, widens the ClusterRole,
// changes an immutable field, and adds and drops objects.
func upgraded(files harness.Files) harness.Files {
	files = files.Clone()
	files["manifest.yaml"] = strings.Replace(files["manifest.yaml"], "1.0.0", "1.1.0", 1)
	crd := files["crd.yaml"]
	from, to := strings.Index(crd, "  - name: v1alpha1"), strings.Index(crd, "  - name: v1\n")
	schema := crd[strings.Index(crd, "schema: &schema")+len("schema: &schema") : to]
	schema = strings.Replace(schema, "              unit: {type: string}\n", "", 1)
	files["crd.yaml"] = crd[:from] + strings.Replace(crd[to:], " *schema\n", schema, 1)
	files["rbac.yaml"] = strings.Replace(files["rbac.yaml"], "verbs: [get, list, watch]\n", `verbs: [get, list, watch, update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list]
`, 1)
	files["deploy.yaml"] = strings.Replace(files["deploy.yaml"], "gauge:v1", "gauge:v2", 1)
	files["secret.yaml"] = strings.Replace(files["secret.yaml"], "before", "after", 1)
	files["new.yaml"] = strings.NewReplacer("gauge-legacy", "gauge-units", "bar", "pascal").Replace(files["old.yaml"])
	delete(files, "old.yaml")
	delete(files, "kept.yaml")
	files["workers.yaml"] = workload("gauge-worker", "workers", "registry.example.com/worker:v2", "worker")
	return files
}

// The plan of an upgrade shows the changes by phase, and where the engine stops. The upgrade
// then makes these changes and stops there.
func TestPlanOfAnUpgrade(t *testing.T) {
	t.Parallel()
	env := shared(t)
	one := env.Push(t, "gauge-operator:v1", operator())
	two := env.Push(t, "gauge-operator:v2", upgraded(operator()))
	code, out, errOut := plan(t, env, one, "--cluster")
	golden(t, env, "install", out)
	if code != 0 || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	env.Create(t, harness.ClusterPackage("gauge-operator", one))
	env.WaitAvailable(t, "", "gauge-operator")
	code, out, errOut = plan(t, env, "clusterpackage/gauge-operator", "--exit-code")
	golden(t, env, "nothing", out)
	if code != 0 || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	code, out, errOut = plan(t, env, two, "--cluster")
	golden(t, env, "upgrade", out)
	if want := "Error: clusterpackage gauge-operator would not be rolled out as planned: 1 refusal\n"; code != 1 || errOut != want {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	stopped := planOf(t, env, two, "--cluster")
	if len(stopped.Refusals) != 1 || stopped.Refusals[0].Name != "gauge-worker" || !cmp.Equal(stopped.Refusals[0].Fields, []string{"spec.selector"}) {
		t.Errorf("the refusals are %+v", stopped.Refusals)
	}

	env.SetImage(t, "", "gauge-operator", two)
	harness.Eventually(t, harness.Patience, "the upgrade to stop at the Deployment gauge-worker", func(context.Context) error {
		blocking := env.Package(t, "", "gauge-operator").PackageStatus().Blocking
		if len(blocking) == 1 && blocking[0].Name == "gauge-worker" && strings.Contains(blocking[0].Message, "immutable") {
			return nil
		}
		return fmt.Errorf("it waits for %+v", blocking)
	})
	follows(t, env, stopped)
}

// follows checks that the upgrade made exactly the planned changes of the phases that it
// reaches.
func follows(t *testing.T, env *harness.Env, p dryrun.Plan) {
	t.Helper()
	get := func(name string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: "gauges", Name: name}, d))
		return d
	}
	for name, want := range map[string]string{"gauge-operator": "registry.example.com/gauge:v2", "gauge-worker": "registry.example.com/worker:v1"} {
		if image := get(name).Spec.Template.Spec.Containers[0].Image; image != want {
			t.Errorf("the image of %s is %s, the plan had %s", name, image, want)
		}
	}
	role, crd := &rbacv1.ClusterRole{}, &apiextensionsv1.CustomResourceDefinition{}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Name: "gauge-operator"}, role); err != nil || len(role.Rules) != 2 {
		t.Errorf("the role is %+v, %v", role.Rules, err)
	}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Name: "gauges.plan.example.com"}, crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Errorf("the definition has %d versions, %v", len(crd.Spec.Versions), err)
	}
	for _, ph := range p.Phases {
		if !ph.Reached {
			t.Errorf("phase %s is not reached by the plan", ph.Name)
		}
	}
}

var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// golden compares with a file after it replaced values that differ from run to run.
func golden(t *testing.T, env *harness.Env, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, env.Registry(), "REGISTRY")
	seen := map[string]string{}
	got = digests.ReplaceAllStringFunc(got, func(digest string) string {
		if seen[digest] == "" {
			seen[digest] = fmt.Sprintf("sha256:DIGEST%d", len(seen)+1)
		}
		return seen[digest]
	})
	harness.Golden(t, name, got, nil)
}
