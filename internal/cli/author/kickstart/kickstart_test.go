package kickstart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

func chart(t testing.TB) string {
	t.Helper()
	return read(t, "../../../../e2e/cli/testdata/shop-rendered.yaml")
}

func inputs(texts ...string) []kickstart.Input {
	var all []kickstart.Input
	for _, text := range texts {
		all = append(all, kickstart.Input{Name: "in.yaml", Data: []byte(text)})
	}
	return all
}

func made(t testing.TB, opts kickstart.Options, texts ...string) *kickstart.Result {
	t.Helper()
	if opts.Name == "" {
		opts.Name = "shop"
	}
	result, err := kickstart.Make(inputs(texts...), opts)
	require.NoError(t, err)
	return result
}

// locked returns the files of a package with its provisional lock.
func locked(result *kickstart.Result) loader.Files {
	files := maps.Clone(result.Files)
	if result.ProvisionalLock != nil {
		files["manifest.lock.yaml"] = result.ProvisionalLock
	}
	return files
}

// load renders the package in its test case.
func load(t testing.TB, result *kickstart.Result) *loader.Package {
	t.Helper()
	files := locked(result)
	if _, err := loader.Validate(context.Background(), files); err != nil {
		t.Fatalf("not valid: %v\n%s", err, result.Files["manifest.yaml"])
	}
	pkg, _, err := loader.Preview(context.Background(), files, loader.PreviewOptions{})
	require.NoError(t, err)
	return pkg
}

// objectsOf returns the objects of a package as phase/Kind name → object.
func objectsOf(t testing.TB, pkg *loader.Package) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, phase := range pkg.Phases {
		for _, o := range phase.Objects {
			var value map[string]any
			require.NoError(t, json.Unmarshal(o.Object.Raw, &value))
			out[phase.Name+"/"+value["kind"].(string)+" "+value["metadata"].(map[string]any)["name"].(string)] = value
		}
	}
	return out
}

func dig(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func TestChart(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{}, chart(t))
	pkg := load(t, result)
	objects := objectsOf(t, pkg)
	want := []string{
		"crds/CustomResourceDefinition coupons.shop.example.com",
		"deploy/ConfigMap main-shop", "deploy/DaemonSet main-shop-agent", "deploy/Deployment main-shop", "deploy/HorizontalPodAutoscaler main-shop",
		"deploy/Secret main-shop", "deploy/Service main-shop", "deploy/Service main-shop-cache", "deploy/StatefulSet main-shop-cache",
		"namespaces/Namespace store", "policies/PodDisruptionBudget main-shop", "pre-install/Job main-shop-migrate",
		"publish/Ingress main-shop", "rbac/ClusterRole main-shop", "rbac/ClusterRoleBinding main-shop", "rbac/ServiceAccount main-shop", "resources/Coupon welcome",
	}
	require.Equal(t, want, slices.Sorted(maps.Keys(objects)))
	var phases []string
	for _, p := range pkg.Phases {
		phases = append(phases, p.Name)
	}
	require.Equal(t, []string{"crds", "namespaces", "policies", "rbac", "pre-install", "deploy", "resources", "publish"}, phases)
	if pkg.Manifest.Spec.Version != "1.4.0" || !slices.Equal(result.Unprobed, []string{"Coupon.shop.example.com"}) || !result.Cluster {
		t.Errorf("version %q, without probes %v", pkg.Manifest.Spec.Version, result.Unprobed)
	}
	web := objects["deploy/Deployment main-shop"]
	if dig(web, "spec", "replicas") != nil || dig(web, "metadata", "namespace") != "store" {
		t.Errorf("replicas %v, namespace %v", dig(web, "spec", "replicas"), dig(web, "metadata", "namespace"))
	}
	if labels := dig(web, "metadata", "labels").(map[string]any); labels["app.kubernetes.io/managed-by"] != nil || labels["helm.sh/chart"] != "shop-1.4.0" {
		t.Errorf("labels %v", labels)
	}
	require.Equal(t, "Hello {{ visitor }}", dig(objects["deploy/ConfigMap main-shop"], "data", "greeting"), "text in double braces became")
	for _, name := range []string{"deploy/Secret main-shop", "crds/CustomResourceDefinition coupons.shop.example.com"} {
		require.Equal(t, corev1alpha1.DeletionPolicyKeep, dig(objects[name], "metadata", "annotations", corev1alpha1.DeletionPolicyAnnotation), fmt.Sprintf("%s: deletion policy", name))
	}
	job := objects["pre-install/Job main-shop-migrate"]
	annotations := dig(job, "metadata", "annotations").(map[string]any)
	if annotations[corev1alpha1.OnImmutableAnnotation] != corev1alpha1.OnImmutableRecreate || annotations["helm.sh/hook"] != nil {
		t.Errorf("annotations %v", annotations)
	}
	wantNotes := []string{
		"Pod main-shop-test-connection is a test of the chart and was left out",
		"Job main-shop-cleanup runs at post-delete in Helm, which has no counterpart here: it was left out",
		"objects without a namespace (13) were put into store; choose another one with --namespace",
		"the Namespace store was added, because objects are in it; it stays when the package is deleted",
		"Deployment store/main-shop is scaled by HorizontalPodAutoscaler store/main-shop, so its replicas were left out",
		"Job store/main-shop-migrate is a hook of Helm (pre-install, pre-upgrade): it becomes an ordinary object in phase pre-install, which runs during the installation, and again when it changes",
		"values of Secrets (1) became configuration below secrets. Everybody who can pull the image can read these defaults: set other values with spec.configFrom, or leave the Secrets out",
	}
	require.Equal(t, wantNotes, result.Notes)
}

// If every field is a parameter, the defaults render to the same objects.
func TestParametersKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	plain := objectsOf(t, load(t, made(t, kickstart.Options{}, chart(t))))
	for _, p := range append([]kickstart.Parameter{"all"}, kickstart.Parameters...) {
		parameters, err := kickstart.ParseParameters([]string{string(p)})
		require.NoError(t, err)
		result := made(t, kickstart.Options{Parameters: parameters}, chart(t))
		got := objectsOf(t, load(t, result))
		for name, object := range got {
			for _, c := range containers(object) {
				if p == "all" || p == kickstart.Images {
					if c["image"] != loader.StaticImage {
						t.Errorf("%s: %s has the image %v", p, name, c["image"])
					}
				}
				normalize(c, plain[name])
			}
			strip(object)
			strip(plain[name])
		}
		require.Equal(t, plain, got, p)
	}
}

func containers(object map[string]any) []map[string]any {
	var out []map[string]any
	list, _ := dig(object, "spec", "template", "spec", "containers").([]any)
	for _, c := range list {
		out = append(out, c.(map[string]any))
	}
	return out
}

// normalize gives a container the image that it has without parameters.
func normalize(c map[string]any, plain map[string]any) {
	for _, other := range containers(plain) {
		if other["name"] == c["name"] {
			c["image"] = other["image"]
			if r, ok := c["resources"].(map[string]any); ok && len(r) == 0 {
				delete(c, "resources")
			}
		}
	}
}

// strip removes empty values, which mean nothing.
func strip(object map[string]any) {
	spec, _ := dig(object, "spec", "template", "spec").(map[string]any)
	for _, key := range []string{"tolerations", "nodeSelector"} {
		switch v := spec[key].(type) {
		case []any:
			if len(v) == 0 {
				delete(spec, key)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(spec, key)
			}
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	parameters, err := kickstart.ParseParameters([]string{"all"})
	require.NoError(t, err)
	result := made(t, kickstart.Options{Parameters: parameters}, chart(t))
	pkg := load(t, result)
	var images []string
	for _, i := range pkg.Manifest.Spec.Images {
		images = append(images, i.Name+"="+i.Image)
	}
	slices.Sort(images)
	require.Equal(t, []string{"agent=registry.example.com/shop/agent:v0.9.0", "redis=docker.io/library/redis:7.4", "web=registry.example.com/shop/web:2.3.1"}, images, "images")
	files := maps.Clone(result.Files)
	files["manifest.lock.yaml"] = result.ProvisionalLock
	changed, _, err := loader.Preview(t.Context(), files, loader.PreviewOptions{Config: []byte(`{
		"namespaces": {"store": "other"},
		"statefulSets": {"mainShopCache": {"replicas": 5, "tolerations": [{"operator": "Exists"}], "containers": {"redis": {"resources": {"limits": {"memory": "1Gi"}}}}}},
		"deployments": {"mainShop": {"nodeSelector": {"disk": "ssd"}, "containers": {"web": {"env": {"CACHE": "elsewhere: {{ x }}"}}}}}}`)})
	require.NoError(t, err)
	objects := objectsOf(t, changed)
	cache, web := objects["deploy/StatefulSet main-shop-cache"], objects["deploy/Deployment main-shop"]
	got := []any{
		dig(objects["namespaces/Namespace other"], "metadata", "name"), dig(cache, "metadata", "namespace"), dig(cache, "spec", "replicas"),
		dig(cache, "spec", "template", "spec", "tolerations"), containers(cache)[0]["resources"],
		dig(web, "spec", "template", "spec", "nodeSelector"), containers(web)[0]["env"].([]any)[0].(map[string]any)["value"],
		objects["rbac/ClusterRoleBinding main-shop"]["subjects"].([]any)[0].(map[string]any)["namespace"],
	}
	want := []any{
		"other", "other", 5.0, []any{map[string]any{"operator": "Exists"}}, map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		map[string]any{"disk": "ssd"}, "elsewhere: {{ x }}", "other",
	}
	require.Equal(t, want, got)
	if _, err := kickstart.ParseParameters([]string{"replica"}); err == nil || !strings.Contains(err.Error(), `"replica" cannot become a parameter`) {
		t.Errorf("got %v", err)
	}
}

func TestNamespaced(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{}, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: default}]
`)
	pkg := load(t, result)
	if len(pkg.Manifest.Spec.Scopes) != 1 || pkg.Manifest.Spec.Scopes[0] != "Namespaced" || result.Cluster {
		t.Errorf("scopes %v", pkg.Manifest.Spec.Scopes)
	}
	binding := objectsOf(t, pkg)["rbac/RoleBinding web"]
	require.Equal(t, "shop", dig(binding["subjects"].([]any)[0], "namespace"), "the binding is for an account in")
	for _, ns := range []string{"kube-system", "apps"} {
		result := made(t, kickstart.Options{Namespace: ns}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}")
		_, added := result.Files["namespaces/"+ns+".namespace.yaml"]
		if added != (ns == "apps") || !result.Cluster {
			t.Errorf("%s: %v", ns, result.Files.Paths())
		}
		load(t, result)
	}
}

func TestPhasesAndProbes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, text, phase string
		probes              int
		unknown             bool
	}{
		"claim":         {"no pod might ever bind it", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}", "deploy", 0, false},
		"balancer":      {"it might never get an address", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 80}]}", "deploy", 0, false},
		"service":       {"nothing to wait for", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}", "deploy", 0, false},
		"webhook":       {"after its server", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}", "admission", 0, false},
		"API":           {"after its server", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.a.example.com}\nspec: {group: a.example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: a, namespace: shop}}", "publish", 1, false},
		"certificate":   {"pods wait for its Secret", "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a}", "deploy", 1, false},
		"replica set":   {"it has no condition Available", "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: a}", "deploy", 1, false},
		"unknown":       {"it is not known", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}", "other", 0, true},
		"storage class": {"before its users", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: a}\nprovisioner: x", "storage", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := made(t, kickstart.Options{Namespace: "shop"}, tc.text)
			pkg := load(t, result)
			last := pkg.Phases[len(pkg.Phases)-1]
			probes := 0
			for _, p := range pkg.Manifest.Spec.AvailabilityProbes {
				if p.Selector.Kind.Kind != "Namespace" {
					probes++
				}
			}
			if last.Name != tc.phase || probes != tc.probes || (len(result.Unprobed) > 0) != tc.unknown {
				t.Errorf("%s: phase %s, %d probes, unknown %v", tc.reason, last.Name, probes, result.Unprobed)
			}
		})
	}
}

// A custom resource of the package itself follows its definition and its controller. Its probe
// waits for the condition that the definition shows.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{}, `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: a, namespace: shop}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Issuer, plural: issuers}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, additionalPrinterColumns: [{name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}]}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`)
	pkg := load(t, result)
	objects := objectsOf(t, pkg)
	if objects["resources/Issuer a"] == nil || objects["resources/Thing a"] == nil || dig(objects["resources/Thing a"], "metadata", "namespace") != nil {
		t.Errorf("got %v", slices.Sorted(maps.Keys(objects)))
	}
	waits := slices.ContainsFunc(result.Notes, func(n string) bool {
		return strings.Contains(n, "no probe waits for Thing a") && strings.HasSuffix(n, `{selector: {kind: {group: example.com, kind: Thing}}, probes: [{condition: {type: Ready, status: "True"}}]}`)
	})
	if len(result.Unprobed) > 0 || len(pkg.Manifest.Spec.AvailabilityProbes) != 3 || !waits {
		t.Errorf("unknown %v, %d probes, %q", result.Unprobed, len(pkg.Manifest.Spec.AvailabilityProbes), result.Notes)
	}
}

func TestHooksByWeight(t *testing.T) {
	t.Parallel()
	hook := func(kind, name, event, weight string) string {
		api := map[string]string{"Job": "batch/v1", "ConfigMap": "v1", "ServiceAccount": "v1"}[kind]
		spec := ""
		if kind == "Job" {
			spec = "\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}"
		}
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: '" + event + "', helm.sh/hook-weight: '" + weight + "'}}" + spec + "\n"
	}
	result := made(t, kickstart.Options{},
		hook("Job", "second", "pre-install", "5"), hook("Job", "first", "pre-install", "-5"), hook("ConfigMap", "data", "pre-install", "-10"),
		hook("ServiceAccount", "runner", "pre-install", "-20"), hook("Job", "last", "post-install, post-upgrade", ""), hook("Job", "never", "pre-rollback", ""))
	want := []string{
		"post-install/Job last", "pre-install-1/ConfigMap data", "pre-install-1/Job first", "pre-install-2/Job second", "rbac/ServiceAccount runner",
	}
	require.Equal(t, want, slices.Sorted(maps.Keys(objectsOf(t, load(t, result)))))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":        {"# only a comment", "the input has no objects"},
		"no YAML":        {"a: [", "Invalid YAML in in.yaml"},
		"a template":     {"{{- if .Values.x }}\na: {{ .Values.y }}\n", "render it first, for example with helm template"},
		"no object":      {"- a", "the document is not an object"},
		"no kind":        {"apiVersion: v2\nname: chart", `apiVersion "v2" and kind "" are not a valid kind`},
		"no name":        {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "the object has no name"},
		"twice":          {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}", "Secret a is also in in.yaml (document 1)"},
		"kustomization":  {"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization", "Build it first: kustomize build"},
		"nested lists":   {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]", "a list within a list"},
		"names to lists": {"apiVersion: v1\nkind: ConfigMap\nmetadata: [a]", "the object has no name"},
	} {
		_, err := kickstart.Make(inputs(tc.text), kickstart.Options{Name: "shop"})
		require.ErrorContains(t, err, tc.want, name)
	}
}

// The output of kubectl get is cleaned of everything that belongs to one cluster.
func TestExport(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{}, `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "status": {"x": 1},
		"metadata": {"name": "A_b:c", "uid": "x", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}],
		"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "data": {"k": "yes", "n": "1"}}]}`)
	want := "apiVersion: v1\ndata:\n  k: \"yes\"\n  \"n\": \"1\"\nkind: ConfigMap\nmetadata:\n  annotations:\n    package-operator.run/phase: deploy\n  name: A_b:c\n"
	require.Equal(t, want, string(result.Files["deploy/a-b-c.configmap.yaml"]), result.Files.Paths())
}

func TestDeterministic(t *testing.T) {
	t.Parallel()
	parameters, _ := kickstart.ParseParameters([]string{"all"})
	first := made(t, kickstart.Options{Parameters: parameters}, chart(t))
	for range 5 {
		if diff := cmp.Diff(first, made(t, kickstart.Options{Parameters: parameters}, chart(t))); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The fields that controllers and the API server wrote are removed, so that the package can be
// installed elsewhere. The author's fields stay.
func TestCleanOfALiveCluster(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{}, live)
	var all strings.Builder
	for _, p := range result.Files.Paths() {
		if strings.Contains(p, "/") && !strings.HasPrefix(p, ".") {
			all.Write(result.Files[p])
		}
	}
	for _, gone := range []string{
		"10.96.0.7", "pvc-123", "controller-uid", "job-name", "pvc-protection", "foregroundDeletion", "bind-completed", "storage-provisioner",
		"metadata.name", "- kubernetes\n", "package-operator.run/version", "package-operator.run/provider", "object-deployment", "package-operator.run/revision",
		"creationTimestamp", "deployment.kubernetes.io",
	} {
		if strings.Contains(all.String(), gone) {
			t.Errorf("%q is still there:\n%s", gone, all.String())
		}
	}
	for _, stays := range []string{"clusterIP: None", "example.com/mine", "package-operator.run/deletion-policy: Keep", "volumeName: chosen", "run: by-hand"} {
		require.Contains(t, all.String(), stays)
	}
}

const live = `apiVersion: v1
kind: Service
metadata: {name: s, namespace: a, labels: {package-operator.run/version: 1.0.0, package-operator.run/provider: x, package-operator.run/object-deployment: y}}
spec: {clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7], ports: [{port: 80}], selector: {a: b}}
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: a, annotations: {package-operator.run/revision: "3", package-operator.run/deletion-policy: Keep}}
spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}], selector: {a: b}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: p, namespace: a, finalizers: [kubernetes.io/pvc-protection, example.com/mine], annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/storage-provisioner: x}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: pvc-123}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: written, namespace: a}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: chosen}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: a, labels: {batch.kubernetes.io/controller-uid: x, controller-uid: x, job-name: j}}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: x}}
  template:
    metadata: {creationTimestamp: null, labels: {run: by-hand, batch.kubernetes.io/controller-uid: x, controller-uid: x, batch.kubernetes.io/job-name: j, job-name: j}}
    spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: a, finalizers: [foregroundDeletion], labels: {kubernetes.io/metadata.name: a}, annotations: {deployment.kubernetes.io/revision: "1"}}
spec: {finalizers: [kubernetes]}
`
