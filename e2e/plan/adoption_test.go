package plan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

// adopted are objects that exist before the package; %[1]s is its name.
var adopted = map[string]string{
	"web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: %[1]s
  labels: {app: web, found: "yes"}
  annotations:
    note: a
spec:
  replicas: 1
  minReadySeconds: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: registry.example.com/web:v1
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
`,
	"settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: %[1]s
  annotations:
    note: a
data: {a: "1", b: "2"}
`,
	"webhook.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %[1]s
  annotations:
    note: a
webhooks:
- name: check.%[1]s.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 5
  clientConfig:
    service: {name: web, namespace: %[1]s, path: /check}
  rules:
  - {apiGroups: [%[1]s.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}
`,
}

// adopting returns the package of the same objects, changed.
func adopting(name string, changes ...string) harness.Files {
	files := harness.Files{"manifest.yaml": harness.Manifest(name, []string{"all"}, "")}
	marked := strings.NewReplacer(append([]string{
		"    note: a\n", "    note: a\n    package-operator.run/phase: all\n    package-operator.run/collision-protection: IfNoController\n",
		"  replicas: 1\n", "", `, found: "yes"`, "",
	}, changes...)...)
	for file, text := range adopted {
		files[file] = fmt.Sprintf(marked.Replace(text), name)
	}
	return files
}

// Objects of kubectl and Helm are adopted with their fields: those that the template lacks
// are removed, those of controllers stay. The plan lists them.
func TestAdoptedObjectsLoseFields(t *testing.T) {
	t.Parallel()
	env := shared(t)
	kubectl := func(args ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if out, err := env.Kubectl(t.Context(), append(args, "-f", dir)...); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	helm := func(write func(context.Context, *unstructured.Unstructured) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for file := range adopted {
				require.NoError(t, write(t.Context(), read(t, filepath.Join(dir, file))))
			}
		}
	}
	for name, install := range map[string]func(*testing.T, string){
		"applied":        kubectl("apply"),
		"server-applied": kubectl("apply", "--server-side"),
		"created":        kubectl("create"),
		"helm3": helm(func(ctx context.Context, u *unstructured.Unstructured) error {
			return env.Client.Create(ctx, u, client.FieldOwner("helm"))
		}),
		"helm4": helm(func(ctx context.Context, u *unstructured.Unstructured) error {
			return env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("helm"))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env.Namespace(t, name)
			dir := t.TempDir()
			for file, text := range adopted {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), fmt.Appendf(nil, text, name), 0o600))
			}
			install(t, dir)
			a := adoption{env: env, name: name}
			a.mutate(t)

			image := env.Push(t, name+":v1", adopting(name))
			a.comparePlan(t, image, dryrun.ActionTakeOver, func() { env.Create(t, harness.ClusterPackage(name, image)) })
			if web := a.get(t, "Deployment", "web"); web.GetLabels()["found"] != "" || web.GetAnnotations()["note"] != "a" {
				t.Errorf("adopted with the labels %v and the annotations %v", web.GetLabels(), web.GetAnnotations())
			}

			image = env.Push(t, name+":v2", adopting(name, `, {name: B, value: "2"}`, "", "  minReadySeconds: 1\n", "", `, b: "2"`, "", "  timeoutSeconds: 5\n", ""))
			a.comparePlan(t, image, dryrun.ActionChange, func() { env.SetImage(t, "", name, image) })
			a.check(t)
		})
	}
}

type adoption struct {
	env  *harness.Env
	name string
}

// mutate writes as other controllers do: it scales, and injects a CA bundle.
func (a *adoption) mutate(t *testing.T) {
	t.Helper()
	err := a.env.Client.SubResource("scale").Patch(t.Context(), a.get(t, "Deployment", "web"),
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)), client.FieldOwner("kube-controller-manager"))
	require.NoError(t, err)
	err = a.env.Client.Patch(t.Context(), a.get(t, "ValidatingWebhookConfiguration", a.name),
		client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"Cg=="}]`)), client.FieldOwner("cainjector"))
	require.NoError(t, err)
}

func (a *adoption) get(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(map[string]string{"Deployment": "apps/v1", "ConfigMap": "v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1"}[kind])
	u.SetKind(kind)
	require.NoError(t, a.env.Client.Get(t.Context(), types.NamespacedName{Namespace: a.name, Name: name}, u))
	return u
}

// comparePlan compares the fields of a plan with those that do changes.
func (a *adoption) comparePlan(t *testing.T, image string, action dryrun.Action, do func()) {
	t.Helper()
	p := planOf(t, a.env, image, "clusterpackage/"+a.name)
	if p.Outcome != dryrun.OutcomeChanges || len(p.Phases[0].Changes) != len(adopted) {
		t.Fatalf("the plan is %+v", p)
	}
	before := map[string]*unstructured.Unstructured{}
	for _, c := range p.Phases[0].Changes {
		if c.Action != action || len(c.Fields) == 0 && (action == dryrun.ActionChange || c.Kind == "Deployment") {
			t.Errorf("the plan says %s of %s: %v", c.Action, c.Object(), c.Fields)
		}
		before[c.Object()] = a.get(t, c.Kind, c.Name)
	}
	do()
	a.env.WaitAvailable(t, "", a.name)
	for _, c := range p.Phases[0].Changes {
		for i := range c.Fields {
			c.Fields[i].Managers = nil
		}
		if diff := cmp.Diff(texts(c.Fields), texts(changed(before[c.Object()], a.get(t, c.Kind, c.Name)))); diff != "" {
			t.Errorf("%s (-plan +happened):\n%s", c.Object(), diff)
		}
	}
}

// check checks the objects after fields left the template.
func (a *adoption) check(t *testing.T) {
	t.Helper()
	web, settings, hook := a.get(t, "Deployment", "web"), a.get(t, "ConfigMap", "settings"), a.get(t, "ValidatingWebhookConfiguration", a.name)
	containers, _, _ := unstructured.NestedSlice(web.Object, "spec", "template", "spec", "containers")
	env := containers[0].(map[string]any)["env"]
	require.Equal(t, []any{map[string]any{"name": "A", "value": "1"}}, env, "env")
	require.Equal(t, map[string]any{"a": "1"}, settings.Object["data"], "data")
	spec := web.Object["spec"].(map[string]any)
	if spec["replicas"] != int64(3) || spec["minReadySeconds"] != nil {
		t.Errorf("%v replicas of the autoscaler's 3, minReadySeconds %v of none", spec["replicas"], spec["minReadySeconds"])
	}
	first := hook.Object["webhooks"].([]any)[0].(map[string]any)
	if first["timeoutSeconds"] != int64(10) || first["clientConfig"].(map[string]any)["caBundle"] != "Cg==" {
		t.Errorf("the webhook is %v, want the default time-out and the injected bundle", first)
	}
}

func read(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: yamltest.Decode(t, string(text))}
}
