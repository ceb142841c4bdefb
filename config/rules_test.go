package config_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/test/require"
)

const probe = `{probes: [{condition: {type: Available}}], selector: {kind: {group: apps, kind: Deployment}}}`

func configMap(name string) string {
	return `{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}}`
}

// creations are specs (of a slice, the top-level fields) as YAML. Kinds are without Cluster; both
// twins are checked. want is a part of the error, and empty if the object is valid.
var creations = []struct{ kind, name, spec, want string }{
	{"Package", "package", `image: example.com/shop:v1`, ""},
	{"Package", "package without image", `component: web`, "exactly one of image and packageRef"},
	{"Package", "package by reference", `packageRef: {name: shop.example.com, version: ">=1, <2"}`, ""},
	{"Package", "package by both", `{image: a, packageRef: {name: shop.example.com}}`, "exactly one of image and packageRef"},
	{"Package", "package by API", `packageRef: {api: {apiVersion: example.com/v1, kind: Shop}, version: ">=1, <2"}`, ""},
	{"Package", "package by name and API", `packageRef: {name: shop, api: {apiVersion: example.com/v1, kind: Shop}}`, "exactly one of name and api"},
	{"ClusterPackage", "package by neither", `packageRef: {version: ">=1, <2"}`, "exactly one of name and api"},
	{"Package", "package by no API", `packageRef: {api: {apiVersion: "Example/v1", kind: Shop}}`, "should match"},
	{"Package", "package by no kind", `packageRef: {api: {apiVersion: example.com/v1, kind: "a b"}}`, "should match"},
	{"PackageRepository", "repository", `source: {image: {ref: example.com/packages}}`, ""},
	{"PackageRepository", "repository without a source", `source: {}`, "exactly one of image, http, git and inline"},
	{"PackageRepository", "repository of two sources", `source: {image: {ref: a}, http: {url: "https://example.com/a.tgz"}}`, "exactly one of image, http, git and inline"},
	{"PackageRepository", "repository too often", `{interval: 5s, source: {image: {ref: a}}}`, "interval must be between 30s and 8760h"},
	{"PackageRepository", "repository with credentials in its URL", `source: {http: {url: "https://me:password@example.com/a.tgz"}}`, "without credentials"},
	{"PackageRepository", "git repository with a password", `source: {git: {url: "https://me:password@example.com/a.git"}}`, "without a password"},
	{"PackageRepository", "git repository by ssh", `source: {git: {url: "ssh://git@example.com/a.git", ref: v1.2.3}}`, ""},
	{"PackageRepository", "git repository in short", `source: {git: {url: "git@example.com:team/a.git", ref: origin/main}}`, ""},
	{"PackageRepository", "tags of a digest", `source: {image: {ref: "a@sha256:0", tagSelection: {}}}`, "has no tags"},
	{"Package", "config is an object", `{image: a, config: [1]}`, "spec.config: Invalid"},
	{"Package", "no time to progress", `{image: a, progressDeadlineSeconds: 0}`, "should be greater than or equal to 1"},
	{"Package", "endless history", `{image: a, revisionHistoryLimit: -1}`, ""},
	{"Package", "senseless history", `{image: a, revisionHistoryLimit: -2}`, "should be greater than or equal to -1"},

	{"Package", "everything about values",
		`{image: a, configFrom: [{secretKeyRef: {name: s, key: values.yaml}}, {configMapKeyRef: {name: c, key: k, optional: true}}],
			patches: [{target: {group: apps, kind: Deployment, name: web-.*, labelSelector: "a=b,c!=d"}, patch: "x: 1"}, {patchFrom: {configMapKeyRef: {name: c, key: k}}}],
			commonMetadata: {labels: {a: b}, annotations: {c: d}}}`, ""},
	{"Package", "everything about pulling and policies",
		`{image: a, imagePullSecrets: [{name: s}], imagePullPolicy: Never, interval: 1h30m, driftPolicy: Report, deletionPolicy: Orphan, collisionProtection: None}`, ""},
	{"Package", "no source", `{image: a, configFrom: [{}]}`, "exactly one of secretKeyRef and configMapKeyRef"},
	{"Package", "two sources",
		`{image: a, configFrom: [{secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: c, key: k}}]}`, "exactly one of secretKeyRef and configMapKeyRef"},
	{"Package", "a key that is a path", `{image: a, configFrom: [{secretKeyRef: {name: s, key: ../k}}]}`, "configFrom[0].secretKeyRef.key"},
	{"Package", "a patch without content", `{image: a, patches: [{target: {kind: X}}]}`, "exactly one of patch and patchFrom"},
	{"Package", "a patch with two contents", `{image: a, patches: [{patch: x, patchFrom: {configMapKeyRef: {name: c, key: k}}}]}`, "exactly one of patch and patchFrom"},
	{"Package", "a target without a selector", `{image: a, patches: [{target: {}, patch: x}]}`, "should have at least 1 properties"},
	{"Package", "an interval of seconds", `{image: a, interval: 59s}`, "interval must be between 1m and 8760h"},
	{"Package", "an interval of decades", `{image: a, interval: 99999h}`, "interval must be between 1m and 8760h"},
	{"Package", "an interval beyond all numbers", `{image: a, interval: 999999h999999h999999h}`, "spec.interval"},
	{"Package", "an interval without a unit", `{image: a, interval: "60"}`, "spec.interval"},
	{"Package", "a negative interval", `{image: a, interval: "-1h"}`, "spec.interval"},
	{"Package", "no such pull policy", `{image: a, imagePullPolicy: Sometimes}`, "imagePullPolicy: Unsupported value"},
	{"Package", "no such drift policy", `{image: a, driftPolicy: Ignore}`, "driftPolicy: Unsupported value"},
	{"Package", "no such deletion policy", `{image: a, deletionPolicy: Keep}`, "deletionPolicy: Unsupported value"},

	{"ObjectDeployment", "deployment", `{selector: {}, template: {metadata: {}, spec: {}}}`, ""},
	{"ObjectDeployment", "deployment without template", `{selector: {}}`, "spec.template: Required"},

	{"ObjectSet", "set", `{phases: [{name: a, objects: [` + configMap("a") + `]}], availabilityProbes: [` + probe + `]}`, ""},
	{"ObjectSet", "negative delay", `{successDelaySeconds: -1}`, "should be greater than or equal to 0"},
	{"ObjectSet", "no such lifecycle", `{lifecycleState: Asleep}`, "spec.lifecycleState: Unsupported value"},
	{"ObjectSet", "no name of an account", `{serviceAccountName: "a/b"}`, "spec.serviceAccountName"},
	{"ObjectSet", "object without a kind", `{phases: [{name: a, objects: [{object: {apiVersion: v1, metadata: {name: a}}}]}]}`, "kind: Required"},
	{"ObjectSet", "collision protection", `{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, collisionProtection: IfNoController}]}]}`, ""},
	{"ObjectSet", "no such collision protection",
		`{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, collisionProtection: Never}]}]}`, "collisionProtection: Unsupported value"},
	{"ObjectSet", "condition mapping",
		`{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, conditionMappings: [{sourceType: Ready, destinationType: my-app.example.com/Ready}]}]}]}`, ""},
	{"ObjectSet", "condition mapping without prefix",
		`{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, conditionMappings: [{sourceType: Ready, destinationType: Ready}]}]}]}`, "destinationType: Invalid value"},
	{"ObjectSet", "condition mapping with more around it",
		`{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, conditionMappings: [{sourceType: Ready, destinationType: "## example.com/Ready !"}]}]}]}`, "destinationType: Invalid value"},
	{"ObjectSet", "probe without kind", `{availabilityProbes: [{probes: [], selector: {}}]}`, "selector.kind: Required"},

	{"ObjectSetPhase", "phase", `{revision: 1, objects: [` + configMap("a") + `]}`, ""},
	{"ObjectSetPhase", "phase without revision", `{objects: []}`, "spec.revision: Required"},
	{"ObjectSetPhase", "phase without objects", `{revision: 1}`, "spec.objects: Required"},

	{"ObjectSlice", "slice", `{objects: [` + configMap("a") + `]}`, ""},
	{"ObjectSlice", "slice without objects", `{}`, "objects: Required"},

	{"ObjectTemplate", "template", `{template: x, sources: [{apiVersion: v1, kind: ConfigMap, name: a, items: [{key: .data.a, destination: a}]}]}`, ""},
	{"ObjectTemplate", "source without items", `{template: x, sources: [{apiVersion: v1, kind: ConfigMap, name: a}]}`, "items: Required"},

	{"HostedClusterPackage", "hosted", `{template: {spec: {image: a}}}`, ""},
	{"ImageConfig", "image config",
		`{matchImages: [{prefix: ghcr.io/acme}, {prefix: "localhost:5000"}], rewrite: {prefix: mirror.example.com}, pullSecretRef: {name: a}, verification: {authorities: [
			{name: a, key: {secretRef: {name: a, key: b}, notAfter: "2027-12-31T00:00:00Z"}}, {name: b, key: {pem: a}},
			{name: c, keyless: {identities: [{issuer: a, subjectRegExp: b}], trustedRootRef: {name: a, key: b}}}]}}`, ""},
	{"ImageConfig", "empty image config", `{matchImages: [{prefix: ghcr.io}]}`, "it is empty: set rewrite"},
	{"ImageConfig", "image config without a host", `{matchImages: [{prefix: acme/shop}], pullSecretRef: {name: a}}`, "matchImages"},
	{"ImageConfig", "image config with two kinds of keys", `{matchImages: [{prefix: ghcr.io}], verification: {authorities: [{name: a}]}}`, "set either key or keyless"},
	{"ImageConfig", "image config with two keys in one",
		`{matchImages: [{prefix: ghcr.io}], verification: {authorities: [{name: a, key: {pem: a, secretRef: {name: a, key: b}}}]}}`, "set one of secretRef, configMapRef and pem"},
	{"ImageConfig", "image config with an identity that matches any signer",
		`{matchImages: [{prefix: ghcr.io}], verification: {authorities: [{name: a, keyless: {identities: [{issuer: a}], trustedRootRef: {name: a, key: b}}}]}}`, "set either subject or subjectRegExp"},
	{"HostedClusterPackage", "hosted in static order", `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: [low, "*", ""]}}}`, ""},
	{"HostedClusterPackage", "hosted with two stars", `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: ["*", "*"]}}}`, "Duplicate value"},
	{"HostedClusterPackage", "hosted with no label value",
		`{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: ["a b"]}}}`, "each item must be a label value or *"},
	{"HostedClusterPackage", "hosted without an order", `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: []}}}`, "static must have items"},
	{"HostedClusterPackage", "hosted all at a time",
		`{template: {spec: {image: a}}, strategy: {rollingUpgrade: {maxUnavailable: 0}}}`, "should be greater than or equal to 1"},
}

// updates have the specs before and after.
var updates = []struct{ kind, name, old, spec, want string }{
	{"Package", "package may change", `image: example.com/shop:v1`, `{image: example.com/shop:v2, paused: true, component: web, config: {deep: [1]}}`, ""},
	{"ObjectDeployment", "deployment may change",
		`{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {phases: [{name: a}]}}}`, `{selector: {}, template: {metadata: {}, spec: {phases: [{name: b}]}}, revisionHistoryLimit: 0}`, ""},
	{"ObjectSet", "lifecycle may change", `{phases: [{name: a}]}`, `{phases: [{name: a}], lifecycleState: Archived}`, ""},
	{"ObjectSet", "phases changed", `{phases: [{name: a}]}`, `{phases: [{name: b}]}`, "phases is immutable"},
	{"ObjectSet", "phases added", `{}`, `{phases: [{name: b}]}`, "phases is immutable"},
	{"ObjectSet", "phases removed", `{phases: [{name: a}]}`, `{}`, "phases is immutable"},
	{"ObjectSet", "object changed",
		`{phases: [{name: a, objects: [` + configMap("a") + `]}]}`, `{phases: [{name: a, objects: [` + configMap("b") + `]}]}`, "phases is immutable"},
	{"ObjectSet", "previous changed", `{previous: [{name: a}]}`, `{previous: [{name: b}]}`, "previous is immutable"},
	{"ObjectSet", "previous added", `{}`, `{previous: [{name: b}]}`, "previous is immutable"},
	{"ObjectSet", "probes added", `{}`, `{availabilityProbes: [` + probe + `]}`, "availabilityProbes is immutable"},
	{"ObjectSet", "probes removed", `{availabilityProbes: [` + probe + `]}`, `{}`, "availabilityProbes is immutable"},
	{"ObjectSet", "delay changed", `{successDelaySeconds: 1}`, `{successDelaySeconds: 2}`, "successDelaySeconds is immutable"},
	{"ObjectSet", "delay removed", `{successDelaySeconds: 1}`, `{}`, "successDelaySeconds is immutable"},
	{"ObjectSet", "account changed", `{serviceAccountName: a}`, `{serviceAccountName: b}`, "serviceAccountName is immutable"},
	{"ObjectSet", "account added", `{}`, `{serviceAccountName: a}`, "serviceAccountName is immutable"},
	{"ObjectSet", "account removed", `{serviceAccountName: a}`, `{}`, "serviceAccountName is immutable"},
	{"ObjectSet", "revision set once", `{}`, `{revision: 1}`, ""},
	{"ObjectSet", "revision grows", `{revision: 1}`, `{revision: 2}`, ""},
	{"ObjectSet", "revision lowered", `{revision: 2}`, `{revision: 1}`, "revision may only grow"},
	{"ObjectSet", "revision removed", `{revision: 1}`, `{}`, "revision may only grow"},
	{"ObjectSetPhase", "phase may be paused", `{revision: 1, objects: []}`, `{revision: 1, objects: [], paused: true}`, ""},
	{"ObjectSetPhase", "phase revision grows", `{revision: 1, objects: []}`, `{revision: 2, objects: []}`, ""},
	{"ObjectSetPhase", "phase revision lowered", `{revision: 2, objects: []}`, `{revision: 1, objects: []}`, "revision may only grow"},
	{"ObjectSetPhase", "phase objects changed", `{revision: 1, objects: []}`, `{revision: 1, objects: [` + configMap("a") + `]}`, "objects is immutable"},
	{"ObjectSetPhase", "phase previous added", `{revision: 1, objects: []}`, `{revision: 1, objects: [], previous: [{name: a}]}`, "previous is immutable"},
	{"ObjectSetPhase", "phase previous changed",
		`{revision: 1, objects: [], previous: [{name: b}]}`, `{revision: 1, objects: [], previous: [{name: a}]}`, "previous is immutable"},
	{"ObjectSetPhase", "phase probes removed",
		`{revision: 1, objects: [], availabilityProbes: [` + probe + `]}`, `{revision: 1, objects: []}`, "availabilityProbes is immutable"},
	{"ObjectSlice", "slice changed", `{objects: [` + configMap("a") + `]}`, `{objects: [` + configMap("b") + `]}`, "objects is immutable"},
}

func TestRulesOfTheCRDs(t *testing.T) {
	t.Parallel()
	crds := loadCRDs(t)
	check := func(kind, name, old, spec, want string) {
		for _, twin := range []string{kind, "Cluster" + kind} {
			crd, ok := crds[twin]
			if !ok {
				continue
			}
			t.Run(twin+"/"+name, func(t *testing.T) {
				t.Parallel()
				if got := admit(t, crd, spec, old); !strings.Contains(got, want) || want == "" && got != "" {
					t.Errorf("got %q, want an error with %q", got, want)
				}
			})
		}
	}

	for _, tc := range creations {
		check(tc.kind, tc.name, "", tc.spec, tc.want)
	}
	for _, tc := range updates {
		check(tc.kind, tc.name, tc.old, tc.spec, tc.want)
	}
}

// A default namespace is for ClusterPackages alone.
func TestDefaultNamespace(t *testing.T) {
	t.Parallel()
	crds := loadCRDs(t)
	for kind, want := range map[string]string{
		"ClusterPackage": "",
		"Package":        "defaultNamespace is for ClusterPackages",
	} {
		if got := admit(t, crds[kind], `{image: a, defaultNamespace: shop}`, ""); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	hosted := admit(t, crds["HostedClusterPackage"], `{template: {spec: {image: a, defaultNamespace: shop}}}`, "")
	require.Contains(t, hosted, "defaultNamespace is for ClusterPackages", "HostedClusterPackage")
	require.Contains(t, admit(t, crds["ClusterPackage"], `{image: a, defaultNamespace: Shop_1}`, ""), "spec.defaultNamespace", "no namespace")
}

func TestDefaultsOfTheCRDs(t *testing.T) {
	t.Parallel()
	crds := loadCRDs(t)
	for name, tc := range map[string]struct{ kind, in, want string }{
		"set": {"ObjectSet",
			`{phases: [{name: a, objects: [` + configMap("a") + `]}], availabilityProbes: [` + probe + `]}`, `{lifecycleState: Active,
				phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, collisionProtection: Prevent}]}],
				availabilityProbes: [{probes: [{condition: {type: Available, status: "True"}}], selector: {kind: {group: apps, kind: Deployment}}}]}`},
		"package": {"Package", `{image: a, unknown: 1}`, `{image: a}`},
		"values of a Secret are sensitive": {"Package",
			`{image: a, configFrom: [{secretKeyRef: {name: s, key: k}}, {secretKeyRef: {name: s, key: k, sensitive: false}}]}`,
			`{image: a, configFrom: [{secretKeyRef: {name: s, key: k, sensitive: true}}, {secretKeyRef: {name: s, key: k, sensitive: false}}]}`},
		"deployment": {"ObjectDeployment",
			`{selector: {}, template: {metadata: {labels: {a: b}, uid: dropped}, spec: {}}}`,
			`{revisionHistoryLimit: 10, selector: {}, template: {metadata: {labels: {a: b}}, spec: {}}}`},
		"hosted": {"HostedClusterPackage",
			`{template: {spec: {image: a, config: {kept: true}}}}`,
			`{strategy: {instant: {}}, hostedClusterSelector: {}, template: {spec: {image: a, config: {kept: true}}}}`},
		"unknown fields of an object are kept, others dropped": {"ObjectSlice",
			`{objects: [{object: {apiVersion: v1, kind: X, any: {thing: 1}}, unknown: 1}]}`,
			`{objects: [{object: {apiVersion: v1, kind: X, any: {thing: 1}}, collisionProtection: Prevent}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := structural(t, crds[tc.kind])
			got, want := decode(t, tc.kind, tc.in), decode(t, tc.kind, tc.want)
			pruning.Prune(got, schema, true)
			defaulting.Default(got, schema)
			gotYAML, wantYAML := toYAML(t, got), toYAML(t, want)
			require.Equal(t, wantYAML, gotYAML)
		})
	}
}

// admit returns the errors with which the API server refuses an object.
func admit(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, newSpec, oldSpec string) string {
	t.Helper()
	schema := structural(t, crd)
	validator, _, err := validation.NewSchemaValidator(internalSchema(t, crd))
	require.NoError(t, err)
	object := decode(t, crd.Spec.Names.Kind, newSpec)
	pruning.Prune(object, schema, true)
	defaulting.Default(object, schema)
	errs := validation.ValidateCustomResource(nil, object, validator)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, object, schema, true)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, schema, object)...)
	var old any
	if oldSpec != "" {
		stored := decode(t, crd.Spec.Names.Kind, oldSpec)
		defaulting.Default(stored, schema)
		old = stored
	}
	if rules := cel.NewValidator(schema, true, celconfig.PerCallLimit); rules != nil {
		celErrs, _ := rules.Validate(context.Background(), nil, schema, object, old, celconfig.RuntimeCELCostBudget)
		errs = append(errs, celErrs...)
	}
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

func decode(t *testing.T, kind, text string) map[string]any {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	content := map[string]any{}
	// This decoder keeps integers, which CEL distinguishes from floats.
	require.NoError(t, json.Unmarshal(document, &content))
	if !strings.HasSuffix(kind, "ObjectSlice") {
		content = map[string]any{"spec": content}
	}
	content["apiVersion"] = "package-operator.run/v1alpha1"
	content["kind"] = kind
	content["metadata"] = map[string]any{"name": "shop"}
	return content
}

func toYAML(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

func internalSchema(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensions.JSONSchemaProps {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil)
	require.NoError(t, err)
	return internal
}

func structural(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *structuralschema.Structural {
	t.Helper()
	schema, err := structuralschema.NewStructural(internalSchema(t, crd))
	require.NoError(t, err)
	return schema
}
