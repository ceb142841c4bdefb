package packages_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// configured returns a package with a ConfigMap that shows its configuration, and a Secret that
// contains the password.
func configured() harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("shop", []string{"deploy"}, `  config:
    openAPIV3Schema:
      type: object
      properties:
        size: {type: integer, default: 1}
        labels: {type: object, additionalProperties: {type: string}}
        list: {type: array, items: {type: string}}
        password: {type: string, default: none-at-all}
`),
		"shown.yaml.gotmpl": `apiVersion: v1
kind: ConfigMap
metadata:
  name: shown
  annotations: {package-operator.run/phase: deploy}
data:
  size: "{{ .config.size }}"
  labels: '{{ toJson (get .config "labels") }}'
  list: '{{ toJson (get .config "list") }}'
`,
		"hidden.yaml.gotmpl": `apiVersion: v1
kind: Secret
metadata:
  name: hidden
  annotations: {package-operator.run/phase: deploy}
stringData:
  password: {{ .config.password | quote }}
`,
	}
}

func source(kind, name, key string, change ...func(*corev1alpha1.ValueSource)) corev1alpha1.ValueSource {
	s := corev1alpha1.ValueSource{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: name, Key: key}}
	if kind == "ConfigMap" {
		s = corev1alpha1.ValueSource{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: name, Key: key}}
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func newConfigMap(ns, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}
}

func newSecret(ns, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: data}
}

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

// shows waits until the ConfigMap of the package shows values.
func shows(t *testing.T, ns string, want map[string]string) {
	t.Helper()
	await(t, newConfigMap(ns, "shown", nil), fmt.Sprintf("to show %v", want), func(c *corev1.ConfigMap) error {
		for key, value := range want {
			if c.Data[key] != value {
				return fmt.Errorf("it shows %v", c.Data)
			}
		}
		return nil
	})
}

// Values of Secrets and ConfigMaps are merged in their order, spec.config over
// them; each change renders the package again, and at rest nothing happens.
func TestConfigFrom(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	env.Create(t, newConfigMap(ns, "base", map[string]string{"values.yaml": "size: 3\nlabels: {a: base, b: base, c: base}\nlist: [x, y]\n"}))
	env.Create(t, newSecret(ns, "login", map[string]string{"values": `{"password": "correct horse battery", "labels": {"b": "login-value"}}`}))
	pkg := harness.Package(ns, "shop", env.Push(t, "configfrom:v1", configured()))
	pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{
		source("ConfigMap", "base", "values.yaml"),
		source("Secret", "login", "values", func(s *corev1alpha1.ValueSource) { s.SecretKeyRef.Sensitive = ptr.To(false) }),
		source("ConfigMap", "none", "values.yaml", func(s *corev1alpha1.ValueSource) { s.ConfigMapKeyRef.Optional = true }),
	}
	pkg.Spec.Config = raw(`{"labels": {"c": "spec"}, "list": ["z"]}`)
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")
	shows(t, ns, map[string]string{"size": "3", "labels": `{"a":"base","b":"login-value","c":"spec"}`, "list": `["z"]`})
	if config := deployment(t, ns).Annotations[corev1alpha1.PackageConfigAnnotation]; config != `{"labels":{"c":"spec"},"list":["z"]}` {
		t.Errorf("the deployment records %s", config)
	}

	loads := loadsOf(t, ns)
	harness.Edit(t, env, newConfigMap(ns, "base", nil), func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "size: 4" })
	shows(t, ns, map[string]string{"size": "4", "labels": `{"b":"login-value","c":"spec"}`})
	env.Create(t, newConfigMap(ns, "none", map[string]string{"values.yaml": "size: 5"}))
	shows(t, ns, map[string]string{"size": "5"})
	await(t, named(ns), "to be at revision 3", func(p *corev1alpha1.Package) error {
		if p.Status.Revision != 3 {
			return fmt.Errorf("it is at %d", p.Status.Revision)
		}
		return nil
	})
	env.Settle(t, ns)
	if n := loadsOf(t, ns) - loads; n != 2 {
		t.Errorf("two changes were loaded %d times", n)
	}

	// Without a change, there is no request and no load.
	from, loads := env.Journal(t), loadsOf(t, ns)
	before := shop(t, ns)
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Labels = map[string]string{"touched": "true"} })
	from.Silent(t, ns)
	if n := loadsOf(t, ns) - loads; n > 0 || shop(t, ns).Status.UnpackedHash != before.Status.UnpackedHash {
		t.Errorf("loaded %d times, hash %s and before %s", n, shop(t, ns).Status.UnpackedHash, before.Status.UnpackedHash)
	}

	// Values that the package's schema refuses change nothing.
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"size": "many"}`) })
	await(t, named(ns), "to be invalid", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, "", "size", "integer")
	})
	shows(t, ns, map[string]string{"size": "5"})
}

// Patches, those from elsewhere among them, and common metadata reach the objects.
func TestPatches(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	env.Create(t, newConfigMap(ns, "patches", map[string]string{"size": "- {op: replace, path: /data/size, value: patched}"}))
	pkg := harness.Package(ns, "shop", env.Push(t, "patches:v1", configured()))
	pkg.Spec.Patches = []corev1alpha1.PackagePatch{
		{Target: &corev1alpha1.PatchTarget{Kind: "ConfigMap", Name: "sh.*"}, Patch: "data: {more: added, labels: null}"},
		{Target: &corev1alpha1.PatchTarget{Kind: "ConfigMap"}, PatchFrom: ptr.To(source("ConfigMap", "patches", "size"))},
	}
	pkg.Spec.CommonMetadata = &corev1alpha1.CommonMetadata{Labels: map[string]string{"team": "blue"}, Annotations: map[string]string{"note": "common"}}
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")
	shows(t, ns, map[string]string{"size": "patched", "more": "added", "labels": ""})
	shown := configMap(t, ns, "shown")
	if shown.Labels["team"] != "blue" || shown.Annotations["note"] != "common" {
		t.Errorf("labels %v, annotations %v", shown.Labels, shown.Annotations)
	}

	harness.Edit(t, env, newConfigMap(ns, "patches", nil), func(c *corev1.ConfigMap) {
		c.Data["size"] = "- {op: replace, path: /data/size, value: again}"
	})
	shows(t, ns, map[string]string{"size": "again"})
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Spec.Patches[0].Target.Name = "nothing" })
	await(t, named(ns), "to refuse a patch without a match", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, "", "spec.patches[0]: it matches no object")
	})
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Spec.Patches, p.Spec.CommonMetadata = nil, nil })
	shows(t, ns, map[string]string{"size": "1", "more": ""})
	if shown := configMap(t, ns, "shown"); shown.Labels["team"] != "" {
		t.Errorf("labels %v", shown.Labels)
	}
}

// A package-wide collision mode holds for objects that state none.
func TestCollisionProtection(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	env.Create(t, newConfigMap(ns, "shop-00-000", map[string]string{"value": "before"}))
	pkg := harness.Package(ns, "shop", push(t, 1, 1, "v1"))
	env.Create(t, pkg)
	await(t, named(ns), "to report the collision", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, "", "shop-00-000")
	})
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) {
		p.Spec.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController
	})
	env.WaitAvailable(t, ns, "shop")
	if taken := configMap(t, ns, "shop-00-000"); taken.Data["value"] != "v1" || metav1.GetControllerOf(taken) == nil {
		t.Errorf("%+v", taken)
	}
}

// With the policy Report drift is named, by an event as well, and left until the policy changes.
func TestDriftIsReported(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	pkg := harness.Package(ns, "shop", push(t, 1, 3, "v1"))
	pkg.Spec.DriftPolicy = corev1alpha1.DriftPolicyReport
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")
	harness.Edit(t, env, configMap(t, ns, "shop-00-001"), func(c *corev1.ConfigMap) { c.Data["value"] = "drifted" })
	await(t, named(ns), "to name the drift", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, corev1alpha1.ConditionDrifted, metav1.ConditionTrue, corev1alpha1.ReasonDriftReported, "shop-00-001 was changed by field manager"),
			harness.HasCondition(p, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
	})
	env.Settle(t, ns)
	env.Journal(t).Silent(t, ns)
	if cm := configMap(t, ns, "shop-00-001"); cm.Data["value"] != "drifted" {
		t.Error("it was corrected")
	}
	if reasons := events(t, ns); !slices.Contains(reasons, "Warning/DriftReported") {
		t.Errorf("events: %v", reasons)
	}
	harness.Edit(t, env, configMap(t, ns, "shop-00-001"), func(c *corev1.ConfigMap) { c.Data["value"] = "v1" })
	await(t, named(ns), "to be without drift", func(p *corev1alpha1.Package) error { return lacks(p, corev1alpha1.ConditionDrifted) })

	harness.Edit(t, env, configMap(t, ns, "shop-00-002"), func(c *corev1.ConfigMap) { c.Data["value"] = "drifted" })
	await(t, named(ns), "to name the drift", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionDrifted, metav1.ConditionTrue, "", "shop-00-002")
	})
	harness.Edit(t, env, named(ns), func(p *corev1alpha1.Package) { p.Spec.DriftPolicy = "" })
	await(t, configMap(t, ns, "shop-00-002"), "to be corrected", func(c *corev1.ConfigMap) error {
		if c.Data["value"] != "v1" {
			return fmt.Errorf("%v", c.Data)
		}
		return nil
	})
	await(t, named(ns), "to be without drift", func(p *corev1alpha1.Package) error { return lacks(p, corev1alpha1.ConditionDrifted) })
}

// Conditions of an object are on its revision, its deployment and its package.
func TestMappedConditions(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	files := harness.Files{
		"manifest.yaml": harness.Manifest("shop", []string{"deploy"}, ""),
		"app.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
  annotations:
    package-operator.run/phase: deploy
    package-operator.run/condition-map: |
      Available => shop.example/AppAvailable
      Progressing => shop.example/AppProgressing
spec:
  replicas: 0
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: example.com/app}]}
`,
	}
	install(t, ns, env.Push(t, "mapped:v1", files))
	await(t, named(ns), "to have the conditions of its object", func(p *corev1alpha1.Package) error {
		return errors.Join(
			harness.HasCondition(p, "shop.example/AppAvailable", metav1.ConditionTrue, "MinimumReplicasAvailable"),
			harness.HasCondition(p, "shop.example/AppProgressing", metav1.ConditionTrue, ""))
	})
	dep := deployment(t, ns)
	if c := conditionOf(dep.Status.Conditions, "shop.example/AppAvailable"); c == nil || c.ObservedGeneration != dep.Generation {
		t.Errorf("the deployment has %+v", dep.Status.Conditions)
	}
	// An upgrade that maps less leaves no stale condition behind.
	files["app.yaml"] = strings.Replace(files["app.yaml"], "      Progressing => shop.example/AppProgressing\n", "", 1)
	env.SetImage(t, ns, "shop", env.Push(t, "mapped:v2", files))
	env.WaitAvailable(t, ns, "shop")
	await(t, named(ns), "to have one mapped condition", func(p *corev1alpha1.Package) error {
		return errors.Join(lacks(p, "shop.example/AppProgressing"), harness.HasCondition(p, "shop.example/AppAvailable", metav1.ConditionTrue, ""))
	})
}

func conditionOf(conds []metav1.Condition, typ string) *metav1.Condition {
	for i := range conds {
		if conds[i].Type == typ {
			return &conds[i]
		}
	}
	return nil
}
