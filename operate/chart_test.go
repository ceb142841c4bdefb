package operate

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../config/chart"
	namespace   = "package-operator-system"
	manager     = "Deployment lockstep-manager"
	keep        = "helm.sh/resource-policy"
)

// objects are manifests by kind and name.
type objects map[string]map[string]any

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart with values in YAML.
func render(t *testing.T, values string) (objects, error) {
	t.Helper()
	return renderChart(t, load(t), values)
}

func renderChart(t *testing.T, c *chart.Chart, values string) (objects, error) {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}

	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "lockstep", Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}

	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}

	rendered := objects{}
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") {
			rendered.add(t, content)
		}
	}

	return rendered, nil
}

func (o objects) add(t *testing.T, documents string) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+documents, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		name := object["kind"].(string) + " " + at(object, "metadata", "name").(string)
		if _, twice := o[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		o[name] = object
	}
}

// at returns a field of an object.
func at(object any, path ...string) any {
	for _, name := range path {
		fields, ok := object.(map[string]any)
		if !ok {
			return nil
		}
		object = fields[name]
	}
	return object
}

// kustomized renders config, with components, except for its Namespace, which Helm creates.
func kustomized(t *testing.T, components ...string) objects {
	t.Helper()
	fs := filesys.MakeFsOnDisk()
	folder := t.TempDir()
	config, err := filepath.Abs("../config")
	if err != nil {
		t.Fatal(err)
	}

	relative, err := filepath.Rel(folder, config)
	if err != nil {
		t.Fatal(err)
	}

	overlay := map[string][]string{"resources": {relative}}
	for _, component := range components {
		overlay["components"] = append(overlay["components"], filepath.Join(relative, component))
	}

	text, err := yaml.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}

	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, folder)
	if err != nil {
		t.Fatal(err)
	}

	document, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}

	built := objects{}
	built.add(t, string(document))
	delete(built, "Namespace "+namespace)
	return built
}

// The chart installs exactly the objects of config, and keeps CRDs.
func TestChartIsConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values     string
		components []string
	}{
		"without values": {},
		"with tenancy":   {values: "tenancy: {enabled: true}", components: []string{"tenancy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			for name, object := range rendered {
				if !strings.HasPrefix(name, "CustomResourceDefinition ") {
					continue
				}
				annotations := at(object, "metadata", "annotations").(map[string]any)
				if annotations[keep] != "keep" {
					t.Errorf("%s is deleted with the release", name)
				}
				delete(annotations, keep)
			}
			if diff := cmp.Diff(kustomized(t, tc.components...), rendered); diff != "" {
				t.Errorf("the chart is not config (-config +chart):\n%s", diff)
			}
		})
	}
}

// Each value changes its own part, and nothing else.
func TestValues(t *testing.T) {
	t.Parallel()
	plain, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}

	pod := []string{"spec", "template", "spec"}
	for values, tc := range map[string]struct {
		object string
		path   []string
		want   string // JSON
	}{
		"manager: {replicas: 3}":                              {object: manager, path: []string{"spec", "replicas"}, want: "3"},
		"manager: {image: {repository: a/b, tag: v1}}":        {object: manager, path: pod, want: `"image":"a/b:v1"`},
		"manager: {image: {pullPolicy: Always}}":              {object: manager, path: pod, want: `"imagePullPolicy":"Always"`},
		"manager: {imagePullSecrets: [a]}":                    {object: "ServiceAccount lockstep-manager", want: `"imagePullSecrets":[{"name":"a"}]`},
		"manager: {serviceAccountAnnotations: {a: b}}":        {object: "ServiceAccount lockstep-manager", want: `"annotations":{"a":"b"}`},
		"manager: {flags: {log-level: debug}}":                {object: manager, path: pod, want: `"--cache-dir=/var/cache/lockstep","--log-level=debug"]`},
		"manager: {flags: {package-hash-modifier: 7}}":        {object: manager, path: pod, want: `"--package-hash-modifier=7"`},
		"manager: {flags: {package-hash-modifier: 1000000}}":  {object: manager, path: pod, want: `"--package-hash-modifier=1000000"`},
		"manager: {flags: {require-verification: true}}":      {object: manager, path: pod, want: `"--require-verification=true"`},
		"manager: {flags: {insecure-registry: [a, b]}}":       {object: manager, path: pod, want: `"--insecure-registry=a","--insecure-registry=b"]`},
		"manager: {flags: {insecure-registry: [2000000, a]}}": {object: manager, path: pod, want: `"--insecure-registry=2000000","--insecure-registry=a"]`},
		"manager: {env: [{name: A, value: b}]}":               {object: manager, path: pod, want: `{"name":"GOMEMLIMIT","value":"400MiB"},{"name":"A","value":"b"}]`},
		"manager: {env: [{name: GOMEMLIMIT, value: 1GiB}]}":   {object: manager, path: pod, want: `{"fieldPath":"metadata.namespace"}}},{"name":"GOMEMLIMIT","value":"1GiB"}]`},
		"manager: {proxy: {https: 'http://p', noProxy: k}}":   {object: manager, path: pod, want: `{"name":"HTTPS_PROXY","value":"http://p"},{"name":"NO_PROXY","value":"k"}]`},
		"manager: {resources: {limits: {memory: 1Gi}}}":       {object: manager, path: pod, want: `"resources":{"limits":{"memory":"1Gi"},"requests":{"cpu":"50m","memory":"128Mi"}}`},
		"manager: {volumes: [{name: a}]}":                     {object: manager, path: pod, want: `"name":"tmp"},{"name":"a"}]`},
		"manager: {volumeMounts: [{name: a, mountPath: /a}]}": {object: manager, path: pod, want: `{"mountPath":"/a","name":"a"}]`},
		"manager: {nodeSelector: {a: b}}":                     {object: manager, path: pod, want: `"nodeSelector":{"a":"b"}`},
		"manager: {tolerations: [{operator: Exists}]}":        {object: manager, path: pod, want: `"tolerations":[{"operator":"Exists"}]`},
		"manager: {affinity: {nodeAffinity: {}}}":             {object: manager, path: pod, want: `"affinity":{"nodeAffinity":{}}`},
		"manager: {podAnnotations: {a: b}}":                   {object: manager, want: `"annotations":{"a":"b","kubectl.kubernetes.io/default-container":"manager"}`},
		"manager: {podLabels: {a: b}}":                        {object: manager, want: `"labels":{"a":"b","app.kubernetes.io/component":"manager","app.kubernetes.io/name":"lockstep"}`},
		"metrics: {readers: [{name: a, namespace: b}]}":       {object: "ClusterRoleBinding lockstep-metrics-reader", want: `"subjects":[{"kind":"ServiceAccount","name":"a","namespace":"b"}]`},
		"manager: {env: [{name: HTTPS_PROXY, valueFrom: {secretKeyRef: {name: a, key: b}}}]}": {
			object: manager, path: pod, want: `{"name":"HTTPS_PROXY","valueFrom":{"secretKeyRef":{"key":"b","name":"a"}}}]`,
		},
		"metrics: {serviceMonitor: {enabled: true, interval: 30s, labels: {a: b}}}": {
			object: "ServiceMonitor lockstep-manager", want: `"labels":{"a":"b","app.kubernetes.io/name":"lockstep"}`,
		},
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			rendered, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(at(rendered[tc.object], tc.path...))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got), tc.want) {
				t.Errorf("%s lacks %s: %s", tc.object, tc.want, got)
			}
			for name, object := range plain {
				if name != tc.object && !cmp.Equal(object, rendered[name]) {
					t.Errorf("%s is another one, too", name)
				}
			}
		})
	}

	for values, want := range map[string]any{"{crds: {enabled: false}}": 0, "{crds: {keep: false}}": 18} {
		rendered, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		crds := 0
		for name, object := range rendered {
			if strings.HasPrefix(name, "CustomResourceDefinition ") {
				crds++
				if at(object, "metadata", "annotations", keep) != nil {
					t.Errorf("with %s, %s is kept", values, name)
				}
			}
		}
		if crds != want {
			t.Errorf("with %s there are %d CRDs, want %d", values, crds, want)
		}
	}
}

// The PrometheusRule of the chart has the alerts of config.
func TestAlerts(t *testing.T) {
	t.Parallel()
	rendered, err := render(t, "metrics: {rules: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile("../config/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var rules any
	if err := yaml.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rules, at(rendered["PrometheusRule lockstep-manager"], "spec")); diff != "" {
		t.Errorf("the PrometheusRule has other alerts (-config +chart):\n%s", diff)
	}
}

// The chart's dashboard equals config's, character by character, although its braces look like a
// template's.
func TestDashboard(t *testing.T) {
	t.Parallel()
	rendered, err := render(t, "metrics: {dashboard: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile("../config/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}

	board := rendered["ConfigMap lockstep-dashboard"]
	if diff := cmp.Diff(string(content), at(board, "data", "lockstep.json")); diff != "" {
		t.Errorf("the chart has another dashboard (-config +chart):\n%s", diff)
	}
	if label := at(board, "metadata", "labels").(map[string]any)["grafana_dashboard"]; label != "1" {
		t.Errorf("Grafana does not find it by the label %v", label)
	}
}

// An upgrade with --reuse-values keeps the values of the previous chart, but uses the new chart's
// image. An explicit tag overrides the digest of the release.
func TestImageOfTheRelease(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("1", 64)
	for given, want := range map[string]string{
		"":                            "lockstep.run/lockstep-manager:v2@" + digest,
		"manager: {image: {tag: v3}}": "lockstep.run/lockstep-manager:v3",
		"manager: {image: {repository: mirror.example/l}}":                     "mirror.example/l:v2@" + digest,
		"manager: {image: {digest: 'sha256:" + strings.Repeat("2", 64) + "'}}": "lockstep.run/lockstep-manager:v2@sha256:" + strings.Repeat("2", 64),
	} {
		c := load(t)
		c.Metadata.AppVersion = "v2"
		c.Metadata.Annotations["lockstep.run/image-digest"] = digest
		rendered, err := renderChart(t, c, given)
		if err != nil {
			t.Fatal(err)
		}
		containers := at(rendered[manager], "spec", "template", "spec", "containers").([]any)
		if image := containers[0].(map[string]any)["image"]; image != want {
			t.Errorf("%q: %v, want %s", given, image, want)
		}
	}
}

// A misspelt value is refused. A value that a parent chart puts at the root is not.
func TestSchema(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"manager: {replica: 3}":                     "'replica' not allowed",
		"manager: {replicas: two}":                  "/manager/replicas",
		"manager: {image: {name: a}}":               "'name' not allowed",
		"manager: {image: {digest: 'sha256:1'}}":    "/manager/image/digest",
		"manager: {flags: {loglevel: debug}}":       "at '/manager/flags': additional properties 'loglevel' not allowed",
		"manager: {flags: {log-level: {a: b}}}":     "/manager/flags/log-level",
		"manager: {env: [{value: a}]}":              "'name'",
		"manager: {resources: {limit: {cpu: 1}}}":   "'limit' not allowed",
		"crds: {install: true}":                     "'install' not allowed",
		"tenancy: true":                             "/tenancy",
		"metrics: {serviceMonitor: {enable: true}}": "'enable' not allowed",
		"metrics: {readers: [{name: a}]}":           "'namespace'",
		"{global: {a: b}, shared: 1}":               "",
	} {
		_, err := render(t, values)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// Every value has a schema, and every schema a value: both are closed.
func TestEveryValueHasASchema(t *testing.T) {
	t.Parallel()
	c := load(t)
	var schema map[string]any
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}

	var compare func(path string, values, schema map[string]any)
	compare = func(path string, values, schema map[string]any) {
		if _, named := schema["additionalProperties"].(map[string]any); named {
			return // users choose the names, as with labels
		}
		properties, _ := schema["properties"].(map[string]any)
		names, known := slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(properties))
		if diff := cmp.Diff(names, known); diff != "" {
			t.Errorf("%s: values.yaml and its schema differ:\n%s", path, diff)
		}
		if path != "" && schema["additionalProperties"] != false {
			t.Errorf("%s is open", path)
		}
		for name, value := range values {
			if nested, ok := value.(map[string]any); ok && len(nested) > 0 {
				compare(path+"/"+name, nested, properties[name].(map[string]any))
			}
		}
	}

	compare("", c.Values, schema)
}

// The chart follows the conventions of Helm and of Artifact Hub.
func TestConventions(t *testing.T) {
	t.Parallel()
	c := load(t)
	meta := c.Metadata
	for what, ok := range map[string]bool{
		"a name":                          meta.Name == "lockstep",
		"a description":                   meta.Description != "",
		"a home":                          meta.Home != "",
		"keywords":                        len(meta.Keywords) > 0,
		"maintainers":                     len(meta.Maintainers) > 0,
		"an oldest version of Kubernetes": meta.KubeVersion != "",
		"a license":                       meta.Annotations["artifacthub.io/license"] == "Apache-2.0",
		"a category":                      meta.Annotations["artifacthub.io/category"] != "",
		"operator":                        meta.Annotations["artifacthub.io/operator"] == "true",
		"a README":                        slices.ContainsFunc(c.Files, func(f *common.File) bool { return f.Name == "README.md" }),
		"no folder crds":                  len(c.CRDObjects()) == 0,
		"a type":                          meta.Type == "application",
	} {
		if !ok {
			t.Errorf("the chart lacks: %s", what)
		}
	}

	for _, message := range lint.RunAll(chartFolder, nil, namespace).Messages {
		if message.Severity > 1 {
			t.Errorf("%s: %v", message.Path, message.Err)
		}
	}
}

// Another namespace has another Lease, so a second engine could lead with it.
func TestOtherNamespace(t *testing.T) {
	t.Parallel()
	c := load(t)
	values, err := util.ToRenderValues(c, nil, common.ReleaseOptions{Name: "lockstep", Namespace: "default"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Render(c, values); err == nil || !strings.Contains(err.Error(), "--namespace package-operator-system") {
		t.Errorf("the chart is installed in another namespace: %v", err)
	}
}
