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

// rule is a create or an update; old and new are the spec (of a slice, the
// top-level fields) as YAML.
type rule struct {
	name string
	kind string // without Cluster; both twins are checked
	old  string // empty for a create
	new  string
	want string // a part of the error; empty if the object is valid
}

const probe = `{probes: [{condition: {type: Available}}], selector: {kind: {group: apps, kind: Deployment}}}`

func configMap(name string) string {
	return `{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}}`
}

var rules = []rule{
	{name: "package", kind: "Package", new: `image: example.com/shop:v1`},
	{name: "package without image", kind: "Package", new: `component: web`, want: "exactly one of image and packageRef"},
	{name: "package by reference", kind: "Package", new: `packageRef: {name: shop.example.com, version: ">=1, <2"}`},
	{name: "package by both", kind: "Package", new: `{image: a, packageRef: {name: shop.example.com}}`, want: "exactly one of image and packageRef"},
	{name: "package by API", kind: "Package", new: `packageRef: {api: {apiVersion: example.com/v1, kind: Shop}, version: ">=1, <2"}`},
	{name: "package by name and API", kind: "Package", new: `packageRef: {name: shop, api: {apiVersion: example.com/v1, kind: Shop}}`, want: "exactly one of name and api"},
	{name: "package by neither", kind: "ClusterPackage", new: `packageRef: {version: ">=1, <2"}`, want: "exactly one of name and api"},
	{name: "package by no API", kind: "Package", new: `packageRef: {api: {apiVersion: "Example/v1", kind: Shop}}`, want: "should match"},
	{name: "package by no kind", kind: "Package", new: `packageRef: {api: {apiVersion: example.com/v1, kind: "a b"}}`, want: "should match"},
	{name: "repository", kind: "PackageRepository", new: `source: {image: {ref: example.com/packages}}`},
	{name: "repository without a source", kind: "PackageRepository", new: `source: {}`, want: "exactly one of image, http, git and inline"},
	{
		name: "repository of two sources", kind: "PackageRepository", want: "exactly one of image, http, git and inline",
		new: `source: {image: {ref: a}, http: {url: "https://example.com/a.tgz"}}`,
	},
	{name: "repository too often", kind: "PackageRepository", new: `{interval: 5s, source: {image: {ref: a}}}`, want: "interval must be between 30s and 8760h"},
	{
		name: "repository with credentials in its URL", kind: "PackageRepository", want: "without credentials",
		new: `source: {http: {url: "https://me:password@example.com/a.tgz"}}`,
	},
	{
		name: "git repository with a password", kind: "PackageRepository", want: "without a password",
		new: `source: {git: {url: "https://me:password@example.com/a.git"}}`,
	},
	{name: "git repository by ssh", kind: "PackageRepository", new: `source: {git: {url: "ssh://git@example.com/a.git", ref: v1.2.3}}`},
	{name: "git repository in short", kind: "PackageRepository", new: `source: {git: {url: "git@example.com:team/a.git", ref: origin/main}}`},
	{
		name: "tags of a digest", kind: "PackageRepository", want: "has no tags",
		new: `source: {image: {ref: "a@sha256:0", tagSelection: {}}}`,
	},
	{
		name: "package may change", kind: "Package", old: `image: example.com/shop:v1`,
		new: `{image: example.com/shop:v2, paused: true, component: web, config: {deep: [1]}}`,
	},
	{name: "config is an object", kind: "Package", new: `{image: a, config: [1]}`, want: "spec.config: Invalid"},
	{
		name: "no time to progress", kind: "Package", new: `{image: a, progressDeadlineSeconds: 0}`,
		want: "should be greater than or equal to 1",
	},
	{name: "endless history", kind: "Package", new: `{image: a, revisionHistoryLimit: -1}`},
	{
		name: "senseless history", kind: "Package", new: `{image: a, revisionHistoryLimit: -2}`,
		want: "should be greater than or equal to -1",
	},

	{
		name: "everything about values", kind: "Package",
		new: `{image: a, configFrom: [{secretKeyRef: {name: s, key: values.yaml}}, {configMapKeyRef: {name: c, key: k, optional: true}}],
			patches: [{target: {group: apps, kind: Deployment, name: web-.*, labelSelector: "a=b,c!=d"}, patch: "x: 1"}, {patchFrom: {configMapKeyRef: {name: c, key: k}}}],
			commonMetadata: {labels: {a: b}, annotations: {c: d}}}`,
	},
	{
		name: "everything about pulling and policies", kind: "Package",
		new: `{image: a, imagePullSecrets: [{name: s}], imagePullPolicy: Never, interval: 1h30m, driftPolicy: Report, deletionPolicy: Orphan, collisionProtection: None}`,
	},
	{name: "no source", kind: "Package", new: `{image: a, configFrom: [{}]}`, want: "exactly one of secretKeyRef and configMapKeyRef"},
	{
		name: "two sources", kind: "Package", want: "exactly one of secretKeyRef and configMapKeyRef",
		new: `{image: a, configFrom: [{secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: c, key: k}}]}`,
	},
	{
		name: "a key that is a path", kind: "Package", want: "configFrom[0].secretKeyRef.key",
		new: `{image: a, configFrom: [{secretKeyRef: {name: s, key: ../k}}]}`,
	},
	{name: "a patch without content", kind: "Package", new: `{image: a, patches: [{target: {kind: X}}]}`, want: "exactly one of patch and patchFrom"},
	{
		name: "a patch with two contents", kind: "Package", want: "exactly one of patch and patchFrom",
		new: `{image: a, patches: [{patch: x, patchFrom: {configMapKeyRef: {name: c, key: k}}}]}`,
	},
	{name: "a target without a selector", kind: "Package", new: `{image: a, patches: [{target: {}, patch: x}]}`, want: "should have at least 1 properties"},
	{name: "an interval of seconds", kind: "Package", new: `{image: a, interval: 59s}`, want: "interval must be between 1m and 8760h"},
	{name: "an interval of decades", kind: "Package", new: `{image: a, interval: 99999h}`, want: "interval must be between 1m and 8760h"},
	{name: "an interval beyond all numbers", kind: "Package", new: `{image: a, interval: 999999h999999h999999h}`, want: "spec.interval"},
	{name: "an interval without a unit", kind: "Package", new: `{image: a, interval: "60"}`, want: "spec.interval"},
	{name: "a negative interval", kind: "Package", new: `{image: a, interval: "-1h"}`, want: "spec.interval"},
	{name: "no such pull policy", kind: "Package", new: `{image: a, imagePullPolicy: Sometimes}`, want: "imagePullPolicy: Unsupported value"},
	{name: "no such drift policy", kind: "Package", new: `{image: a, driftPolicy: Ignore}`, want: "driftPolicy: Unsupported value"},
	{name: "no such deletion policy", kind: "Package", new: `{image: a, deletionPolicy: Keep}`, want: "deletionPolicy: Unsupported value"},

	{name: "deployment", kind: "ObjectDeployment", new: `{selector: {}, template: {metadata: {}, spec: {}}}`},
	{
		name: "deployment may change", kind: "ObjectDeployment",
		old: `{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {phases: [{name: a}]}}}`,
		new: `{selector: {}, template: {metadata: {}, spec: {phases: [{name: b}]}}, revisionHistoryLimit: 0}`,
	},
	{
		name: "deployment without template", kind: "ObjectDeployment", new: `{selector: {}}`,
		want: "spec.template: Required",
	},

	{
		name: "set", kind: "ObjectSet",
		new: `{phases: [{name: a, objects: [` + configMap("a") + `]}], availabilityProbes: [` + probe + `]}`,
	},
	{
		name: "negative delay", kind: "ObjectSet", new: `{successDelaySeconds: -1}`,
		want: "should be greater than or equal to 0",
	},
	{name: "lifecycle may change", kind: "ObjectSet", old: `{phases: [{name: a}]}`, new: `{phases: [{name: a}], lifecycleState: Archived}`},
	{name: "no such lifecycle", kind: "ObjectSet", new: `{lifecycleState: Asleep}`, want: "spec.lifecycleState: Unsupported value"},
	{name: "phases changed", kind: "ObjectSet", old: `{phases: [{name: a}]}`, new: `{phases: [{name: b}]}`, want: "phases is immutable"},
	{name: "phases added", kind: "ObjectSet", old: `{}`, new: `{phases: [{name: b}]}`, want: "phases is immutable"},
	{name: "phases removed", kind: "ObjectSet", old: `{phases: [{name: a}]}`, new: `{}`, want: "phases is immutable"},
	{
		name: "object changed", kind: "ObjectSet", want: "phases is immutable",
		old: `{phases: [{name: a, objects: [` + configMap("a") + `]}]}`,
		new: `{phases: [{name: a, objects: [` + configMap("b") + `]}]}`,
	},
	{name: "previous changed", kind: "ObjectSet", old: `{previous: [{name: a}]}`, new: `{previous: [{name: b}]}`, want: "previous is immutable"},
	{name: "previous added", kind: "ObjectSet", old: `{}`, new: `{previous: [{name: b}]}`, want: "previous is immutable"},
	{name: "probes added", kind: "ObjectSet", old: `{}`, new: `{availabilityProbes: [` + probe + `]}`, want: "availabilityProbes is immutable"},
	{name: "probes removed", kind: "ObjectSet", old: `{availabilityProbes: [` + probe + `]}`, new: `{}`, want: "availabilityProbes is immutable"},
	{name: "delay changed", kind: "ObjectSet", old: `{successDelaySeconds: 1}`, new: `{successDelaySeconds: 2}`, want: "successDelaySeconds is immutable"},
	{name: "delay removed", kind: "ObjectSet", old: `{successDelaySeconds: 1}`, new: `{}`, want: "successDelaySeconds is immutable"},
	{name: "account changed", kind: "ObjectSet", old: `{serviceAccountName: a}`, new: `{serviceAccountName: b}`, want: "serviceAccountName is immutable"},
	{name: "account added", kind: "ObjectSet", old: `{}`, new: `{serviceAccountName: a}`, want: "serviceAccountName is immutable"},
	{name: "account removed", kind: "ObjectSet", old: `{serviceAccountName: a}`, new: `{}`, want: "serviceAccountName is immutable"},
	{name: "no name of an account", kind: "ObjectSet", new: `{serviceAccountName: "a/b"}`, want: "spec.serviceAccountName"},
	{name: "revision set once", kind: "ObjectSet", old: `{}`, new: `{revision: 1}`},
	{name: "revision grows", kind: "ObjectSet", old: `{revision: 1}`, new: `{revision: 2}`},
	{name: "revision lowered", kind: "ObjectSet", old: `{revision: 2}`, new: `{revision: 1}`, want: "revision may only grow"},
	{name: "revision removed", kind: "ObjectSet", old: `{revision: 1}`, new: `{}`, want: "revision may only grow"},
	{
		name: "object without a kind", kind: "ObjectSet", want: "kind: Required",
		new: `{phases: [{name: a, objects: [{object: {apiVersion: v1, metadata: {name: a}}}]}]}`,
	},
	{
		name: "collision protection", kind: "ObjectSet",
		new: `{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, collisionProtection: IfNoController}]}]}`,
	},
	{
		name: "no such collision protection", kind: "ObjectSet", want: "collisionProtection: Unsupported value",
		new: `{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, collisionProtection: Never}]}]}`,
	},
	{
		name: "condition mapping", kind: "ObjectSet",
		new: `{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, conditionMappings: [{sourceType: Ready, destinationType: my-app.example.com/Ready}]}]}]}`,
	},
	{
		name: "condition mapping without prefix", kind: "ObjectSet", want: "destinationType: Invalid value",
		new: `{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, conditionMappings: [{sourceType: Ready, destinationType: Ready}]}]}]}`,
	},
	{
		name: "condition mapping with more around it", kind: "ObjectSet", want: "destinationType: Invalid value",
		new: `{phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap}, conditionMappings: [{sourceType: Ready, destinationType: "## example.com/Ready !"}]}]}]}`,
	},
	{
		name: "probe without kind", kind: "ObjectSet", want: "selector.kind: Required",
		new: `{availabilityProbes: [{probes: [], selector: {}}]}`,
	},

	{name: "phase", kind: "ObjectSetPhase", new: `{revision: 1, objects: [` + configMap("a") + `]}`},
	{name: "phase without revision", kind: "ObjectSetPhase", new: `{objects: []}`, want: "spec.revision: Required"},
	{name: "phase without objects", kind: "ObjectSetPhase", new: `{revision: 1}`, want: "spec.objects: Required"},
	{name: "phase may be paused", kind: "ObjectSetPhase", old: `{revision: 1, objects: []}`, new: `{revision: 1, objects: [], paused: true}`},
	{name: "phase revision grows", kind: "ObjectSetPhase", old: `{revision: 1, objects: []}`, new: `{revision: 2, objects: []}`},
	{name: "phase revision lowered", kind: "ObjectSetPhase", old: `{revision: 2, objects: []}`, new: `{revision: 1, objects: []}`, want: "revision may only grow"},
	{name: "phase objects changed", kind: "ObjectSetPhase", old: `{revision: 1, objects: []}`, new: `{revision: 1, objects: [` + configMap("a") + `]}`, want: "objects is immutable"},
	{name: "phase previous added", kind: "ObjectSetPhase", old: `{revision: 1, objects: []}`, new: `{revision: 1, objects: [], previous: [{name: a}]}`, want: "previous is immutable"},
	{name: "phase previous changed", kind: "ObjectSetPhase", old: `{revision: 1, objects: [], previous: [{name: b}]}`, new: `{revision: 1, objects: [], previous: [{name: a}]}`, want: "previous is immutable"},
	{name: "phase probes removed", kind: "ObjectSetPhase", old: `{revision: 1, objects: [], availabilityProbes: [` + probe + `]}`, new: `{revision: 1, objects: []}`, want: "availabilityProbes is immutable"},

	{name: "slice", kind: "ObjectSlice", new: `{objects: [` + configMap("a") + `]}`},
	{name: "slice without objects", kind: "ObjectSlice", new: `{}`, want: "objects: Required"},
	{name: "slice changed", kind: "ObjectSlice", old: `{objects: [` + configMap("a") + `]}`, new: `{objects: [` + configMap("b") + `]}`, want: "objects is immutable"},

	{
		name: "template", kind: "ObjectTemplate",
		new: `{template: x, sources: [{apiVersion: v1, kind: ConfigMap, name: a, items: [{key: .data.a, destination: a}]}]}`,
	},
	{
		name: "source without items", kind: "ObjectTemplate", want: "items: Required",
		new: `{template: x, sources: [{apiVersion: v1, kind: ConfigMap, name: a}]}`,
	},

	{name: "hosted", kind: "HostedClusterPackage", new: `{template: {spec: {image: a}}}`},
	{
		name: "image config", kind: "ImageConfig",
		new: `{matchImages: [{prefix: ghcr.io/acme}, {prefix: "localhost:5000"}], rewrite: {prefix: mirror.example.com}, pullSecretRef: {name: a}, verification: {authorities: [
			{name: a, key: {secretRef: {name: a, key: b}, notAfter: "2027-12-31T00:00:00Z"}}, {name: b, key: {pem: a}},
			{name: c, keyless: {identities: [{issuer: a, subjectRegExp: b}], trustedRootRef: {name: a, key: b}}}]}}`,
	},
	{name: "empty image config", kind: "ImageConfig", want: "it is empty: set rewrite", new: `{matchImages: [{prefix: ghcr.io}]}`},
	{name: "image config without a host", kind: "ImageConfig", want: "matchImages", new: `{matchImages: [{prefix: acme/shop}], pullSecretRef: {name: a}}`},
	{
		name: "image config with two kinds of keys", kind: "ImageConfig", want: "set either key or keyless",
		new: `{matchImages: [{prefix: ghcr.io}], verification: {authorities: [{name: a}]}}`,
	},
	{
		name: "image config with two keys in one", kind: "ImageConfig", want: "set one of secretRef, configMapRef and pem",
		new: `{matchImages: [{prefix: ghcr.io}], verification: {authorities: [{name: a, key: {pem: a, secretRef: {name: a, key: b}}}]}}`,
	},
	{
		name: "image config with an identity that matches any signer", kind: "ImageConfig", want: "set either subject or subjectRegExp",
		new: `{matchImages: [{prefix: ghcr.io}], verification: {authorities: [{name: a, keyless: {identities: [{issuer: a}], trustedRootRef: {name: a, key: b}}}]}}`,
	},
	{
		name: "hosted in static order", kind: "HostedClusterPackage",
		new: `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: [low, "*", ""]}}}`,
	},
	{
		name: "hosted with two stars", kind: "HostedClusterPackage", want: "Duplicate value",
		new: `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: ["*", "*"]}}}`,
	},
	{
		name: "hosted with no label value", kind: "HostedClusterPackage", want: "each item must be a label value or *",
		new: `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: ["a b"]}}}`,
	},
	{
		name: "hosted without an order", kind: "HostedClusterPackage", want: "static must have items",
		new: `{template: {spec: {image: a}}, partition: {labelKey: risk, order: {static: []}}}`,
	},
	{
		name: "hosted all at a time", kind: "HostedClusterPackage", want: "should be greater than or equal to 1",
		new: `{template: {spec: {image: a}}, strategy: {rollingUpgrade: {maxUnavailable: 0}}}`,
	},
}

func TestRulesOfTheCRDs(t *testing.T) {
	t.Parallel()
	crds := loadCRDs(t)
	for _, tc := range rules {
		for _, name := range []string{tc.kind, "Cluster" + tc.kind} {
			crd, ok := crds[name]
			if !ok {
				continue
			}
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				got := admit(t, crd, tc.new, tc.old)
				switch {
				case tc.want == "" && got != "":
					t.Errorf("refused with %q", got)
				case tc.want != "" && !strings.Contains(got, tc.want):
					t.Errorf("got %q, want an error with %q", got, tc.want)
				}
			})
		}
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
	if !strings.Contains(hosted, "defaultNamespace is for ClusterPackages") {
		t.Errorf("HostedClusterPackage: got %q", hosted)
	}
	if got := admit(t, crds["ClusterPackage"], `{image: a, defaultNamespace: Shop_1}`, ""); !strings.Contains(got, "spec.defaultNamespace") {
		t.Errorf("no namespace: got %q", got)
	}
}

func TestDefaultsOfTheCRDs(t *testing.T) {
	t.Parallel()
	crds := loadCRDs(t)
	for name, tc := range map[string]struct{ kind, in, want string }{
		"set": {
			kind: "ObjectSet",
			in:   `{phases: [{name: a, objects: [` + configMap("a") + `]}], availabilityProbes: [` + probe + `]}`,
			want: `{lifecycleState: Active,
				phases: [{name: a, objects: [{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, collisionProtection: Prevent}]}],
				availabilityProbes: [{probes: [{condition: {type: Available, status: "True"}}], selector: {kind: {group: apps, kind: Deployment}}}]}`,
		},
		"package": {
			kind: "Package",
			in:   `{image: a, unknown: 1}`,
			want: `{image: a}`,
		},
		"values of a Secret are sensitive": {
			kind: "Package",
			in:   `{image: a, configFrom: [{secretKeyRef: {name: s, key: k}}, {secretKeyRef: {name: s, key: k, sensitive: false}}]}`,
			want: `{image: a, configFrom: [{secretKeyRef: {name: s, key: k, sensitive: true}}, {secretKeyRef: {name: s, key: k, sensitive: false}}]}`,
		},
		"deployment": {
			kind: "ObjectDeployment",
			in:   `{selector: {}, template: {metadata: {labels: {a: b}, uid: dropped}, spec: {}}}`,
			want: `{revisionHistoryLimit: 10, selector: {}, template: {metadata: {labels: {a: b}}, spec: {}}}`,
		},
		"hosted": {
			kind: "HostedClusterPackage",
			in:   `{template: {spec: {image: a, config: {kept: true}}}}`,
			want: `{strategy: {instant: {}}, hostedClusterSelector: {}, template: {spec: {image: a, config: {kept: true}}}}`,
		},
		"unknown fields of an object are kept, others dropped": {
			kind: "ObjectSlice",
			in:   `{objects: [{object: {apiVersion: v1, kind: X, any: {thing: 1}}, unknown: 1}]}`,
			want: `{objects: [{object: {apiVersion: v1, kind: X, any: {thing: 1}}, collisionProtection: Prevent}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := structural(t, crds[tc.kind])
			got, want := decode(t, tc.kind, tc.in), decode(t, tc.kind, tc.want)
			pruning.Prune(got, schema, true)
			defaulting.Default(got, schema)
			gotYAML, wantYAML := toYAML(t, got), toYAML(t, want)
			if gotYAML != wantYAML {
				t.Errorf("got:\n%s\nwant:\n%s", gotYAML, wantYAML)
			}
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
