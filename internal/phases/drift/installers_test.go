package drift

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

// TestAdoption checks that adopting an installer's object removes the installer's fields that the
// template lacks, and keeps other managers' fields.
func TestAdoption(t *testing.T) {
	t.Parallel()
	const found = `
metadata:
  name: web
  namespace: shop
  uid: u
  resourceVersion: "7"
  finalizers: [example.com/theirs]
  labels: {app: web}
  annotations: {found: x, note: a}
spec:
  replicas: 2
  minReadySeconds: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}]
`
	made := func(manager string) func(t *testing.T, c *cluster) {
		return func(_ *testing.T, c *cluster) {
			c.update(manager, func(obj map[string]any) {
				for key, value := range c.object(found).Object {
					obj[key] = value
				}
				obj["spec"].(map[string]any)["progressDeadlineSeconds"] = int64(600)
			})
		}
	}
	applied := func(manager string) func(t *testing.T, c *cluster) {
		return func(_ *testing.T, c *cluster) { c.apply(manager, found) }
	}
	for name, tool := range map[string]func(t *testing.T, c *cluster){
		"kubectl apply": made("kubectl-client-side-apply"), "kubectl apply --server-side": applied("kubectl"),
		"kubectl create": made("kubectl-create"), "kubectl package adopt": made("kubectl-package-handover"), "kapp": made("kapp"), "Helm 3": made("helm"), "Helm 4": applied("helm"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "apis__apps__v1.json", deploymentKind)
			tool(t, c)
			c.update("sidecars", func(obj map[string]any) { fieldsAt(t, obj, "metadata", "labels")["injected"] = "yes" })
			first := strings.NewReplacer("found: x, ", "", "  finalizers: [example.com/theirs]\n", "", "  replicas: 2\n", "").Replace(found)
			adopt(t, c, first)
			if got := fieldsAt(t, c.live().Object, "metadata", "annotations"); got["found"] != nil || got["note"] != "a" {
				t.Errorf("adopted with the annotations %v", got)
			}

			second := strings.NewReplacer("  minReadySeconds: 3\n", "", `, {name: B, value: "2"}`, "", "note: a", "").Replace(first)
			c.apply("package-operator", second)
			after := c.live().Object
			spec, metadata := fieldsAt(t, after, "spec"), fieldsAt(t, after, "metadata")
			if env := at(t, podSpec(t, after), "containers", 0, "env").([]any); len(env) != 1 || spec["minReadySeconds"] != nil || metadata["annotations"] != nil {
				t.Errorf("what left the template stays: %v, %v, %v", env, spec["minReadySeconds"], metadata["annotations"])
			}
			if spec["replicas"] != int64(2) {
				t.Errorf("%v replicas are left of 2, which no template states", spec["replicas"])
			}
			require.Equal(t, "yes", fieldsAt(t, after, "metadata", "labels")["injected"], "a label of another manager was removed")
			require.Equal(t, []any{"example.com/theirs"}, metadata["finalizers"], "finalizers")
		})
	}
}

// adopt works like the engine: one patch of managedFields, then the apply.
func adopt(t *testing.T, c *cluster, template string) {
	t.Helper()
	live := c.live()
	if !HasInstaller(apinames.Default, live.GetManagedFields()) {
		t.Fatal("there is no entry of an installer")
	}

	patch, needed, err := Migration(apinames.Default, live, Origin{Next: c.object(template).Object, Adopting: true})
	if err != nil || !needed {
		t.Fatalf("Migration = %t, %v", needed, err)
	}

	migrated, err := patched(t, live, patch)
	require.NoError(t, err)
	require.NoError(t, c.fields.Update(migrated, "migration"))
	c.apply("package-operator", template)
}

func TestEntriesOfInstallers(t *testing.T) {
	t.Parallel()
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	template := yamltest.Decode(t, `{metadata: {finalizers: [ours]}, data: {a: "1"}, spec: {size: 1}}`)
	scale := entry("kubectl", update, "v1", `{"f:spec":{"f:replicas":{}}}`)
	scale.Subresource = "scale"
	for _, test := range []struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    []metav1.ManagedFieldsEntry
	}{
		{"as a whole, regardless of the template, and one with our fields",
			[]metav1.ManagedFieldsEntry{entry("helm", update, "v1", `{"f:data":{"f:a":{},"f:z":{}}}`), entry("package-operator", apply, "v1", `{"f:data":{"f:b":{}}}`)},
			[]metav1.ManagedFieldsEntry{entry("package-operator", apply, "v1", `{"f:data":{"f:a":{},"f:b":{},"f:z":{}}}`)}},
		{"fields that others rely on stay with their manager, unless the template has them",
			[]metav1.ManagedFieldsEntry{entry("kubectl", apply, "v1",
				`{"f:metadata":{"f:finalizers":{"v:\"ours\"":{},"v:\"theirs\"":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},"f:spec":{"f:replicas":{},"f:size":{}},"f:status":{"f:x":{}}}`)},
			[]metav1.ManagedFieldsEntry{
				entry("kubectl", apply, "v1", `{"f:metadata":{"f:finalizers":{"v:\"theirs\"":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},"f:spec":{"f:replicas":{}},"f:status":{"f:x":{}}}`),
				entry("package-operator", apply, "v1", `{"f:metadata":{"f:finalizers":{"v:\"ours\"":{}}},"f:spec":{"f:size":{}}}`),
			}},
		{"subresources and those who change single fields keep theirs",
			[]metav1.ManagedFieldsEntry{scale, entry("kubectl-edit", update, "v1", `{"f:data":{"f:z":{}}}`), entry("cainjector", update, "v1", `{"f:data":{"f:ca":{}}}`), entry("kubectl-create", update, "v1", `{"f:data":{"f:ca":{}}}`)},
			[]metav1.ManagedFieldsEntry{scale, entry("kubectl-edit", update, "v1", `{"f:data":{"f:z":{}}}`), entry("cainjector", update, "v1", `{"f:data":{"f:ca":{}}}`), entry("package-operator", apply, "v1", `{"f:data":{"f:ca":{}}}`)}},
	} {
		migrated, err := migrate(apinames.Default, test.entries, "v1", Origin{Next: template, Adopting: true})
		require.NoError(t, err)
		texts := func(entries []metav1.ManagedFieldsEntry) []string {
			var all []string
			for _, e := range entries {
				all = append(all, e.Manager+" "+string(e.Operation)+" "+e.Subresource+" "+string(e.FieldsV1.GetRawBytes()))
			}
			return all
		}
		require.Equal(t, texts(test.want), texts(migrated), test.reason)
	}
}
