package lint

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

// files reads "-- path" lines before their content.
func files(text string) loader.Files {
	out := loader.Files{}
	var path string
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			path = strings.TrimSpace(name)
			continue
		}
		out[path] = append(out[path], line...)
	}
	return out
}

// good gives every rule something to check, and has no findings.
const good = `
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: shop}
spec:
  version: 1.0.0
  scopes: [Cluster]
  display: {name: Shop, shortDescription: Sells things., maintainers: [{name: Us}]}
  images: [{name: shop, image: "example.com/shop:v1"}]
  phases: [{name: crds}, {name: rbac}, {name: deploy}, {name: webhooks}, {name: last}]
  availabilityProbes:
  - selector: {kind: {group: apiextensions.k8s.io, kind: CustomResourceDefinition}}
    probes: [{condition: {type: Established, status: "True"}}]
  - selector: {kind: {group: apps, kind: Deployment}}
    probes:
    - {condition: {type: Available, status: "True"}}
    - fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}
    - fieldsEqual: {fieldA: ".status | keys | length", fieldB: .status.replicas}
  config:
    openAPIV3Schema:
      type: object
      properties:
        shop:
          type: object
          properties:
            replicas: {type: integer, description: Replicas of the shop., default: 1}
test:
  template:
  - name: one
    context: {package: {metadata: {name: shop}}}
  - name: two
    context: {package: {metadata: {name: shop-two}}}
-- manifest.lock.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifestLock
metadata: {name: shop}
spec:
  images: [{name: shop, image: "example.com/shop:v1", digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}]
-- crd.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: items.shop.example.com
  annotations: {package-operator.run/phase: crds, package-operator.run/deletion-policy: Keep}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {kind: Item, listKind: ItemList, plural: items, singular: item}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}
-- namespace.yaml
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {package-operator.run/phase: crds}}
-- role.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop, annotations: {package-operator.run/phase: rbac}}
rules: [{apiGroups: [""], resources: ["*"], verbs: ["*"]}]
-- secret.yaml.gotmpl
apiVersion: v1
kind: Secret
metadata: {name: shop, namespace: shop, annotations: {package-operator.run/phase: rbac}}
stringData: {password: "{{ .package.metadata.name }}"}
-- deploy.yaml.gotmpl
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop, annotations: {package-operator.run/phase: deploy}}
spec:
  minReadySeconds: 5
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "{{ .images.shop }}"}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop, annotations: {package-operator.run/phase: deploy}}
spec: {selector: {app: shop}, ports: [{port: 443}]}
-- webhook.yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: shop, annotations: {package-operator.run/phase: webhooks}}
webhooks:
- name: items.shop.example.com
  clientConfig: {service: {name: shop, namespace: shop}}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [shop.example.com], apiVersions: ["*"], operations: [CREATE], resources: [items]}]
-- item.yaml
apiVersion: shop.example.com/v1
kind: Item
metadata: {name: first, namespace: shop, annotations: {package-operator.run/phase: last}}
`

const (
	otherItem  = "metadata: {name: first, namespace: shop, annotations: {package-operator.run/phase: last}}\n"
	crdStatus  = "{status: {type: object, properties"
	crdSpec    = "{spec: {type: object, x-kubernetes-preserve-unknown-fields: true}, "
	autoscaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: shop, namespace: shop, annotations: {package-operator.run/phase: last}}\nspec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}\n"
	part       = "---\napiVersion: package-operator.run/v1alpha1\nkind: ClusterPackage\nmetadata: {name: part, annotations: {package-operator.run/phase: last, package-operator.run/collision-protection: None}}\n"
)

// edit is a change of the good package: texts and their replacements.
type edit []string

func (e edit) apply(t *testing.T) loader.Files {
	t.Helper()
	text := good
	for i := 0; i < len(e); i += 2 {
		if !strings.Contains(text, e[i]) {
			t.Fatalf("no %q to replace", e[i])
		}
		text = strings.Replace(text, e[i], e[i+1], 1)
	}
	return files(text)
}

const (
	webhookPhase = "metadata: {name: shop, annotations: {package-operator.run/phase: webhooks}}"
	webhookRules = "rules: [{apiGroups: [shop.example.com], apiVersions: [\"*\"], operations: [CREATE], resources: [items]}]"
	claim        = `
-- claim.yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, annotations: {package-operator.run/phase: rbac}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
)

// webhookOwner lets the Deployment write the webhook configuration.
var webhookOwner = edit{"\n-- secret.yaml.gotmpl", `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: hooks, annotations: {package-operator.run/phase: rbac}}
rules: [{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hooks, annotations: {package-operator.run/phase: rbac}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hooks}
subjects: [{kind: ServiceAccount, name: default, namespace: shop}]
-- secret.yaml.gotmpl`}

func TestRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule string
		// bad leads to a finding with this text, and fine does not.
		bad, fine edit
		want      string
		// from is the older package, with these edits.
		from *edit
	}{
		{"webhook-before-backend", edit{webhookPhase, strings.Replace(webhookPhase, "webhooks", "deploy", 1)},
			edit{webhookPhase, strings.Replace(webhookPhase, "webhooks", "deploy", 1), "  sideEffects: None", "  sideEffects: None\n  failurePolicy: Ignore"},
			`webhook.yaml:3 webhooks[name="items.shop.example.com"] it is in phase "deploy", and Deployment shop, which it needs, in phase "deploy"`, nil},
		{"webhook-own-api-group", edit{webhookRules, strings.Replace(webhookRules, "[shop.example.com]", "[package-operator.run]", 1)},
			edit{webhookRules, strings.Replace(webhookRules, "[shop.example.com]", "[\"*\"]", 1)},
			"it matches package-operator.run", nil},
		{"webhook-own-api-group", edit{webhookRules, strings.Replace(strings.Replace(webhookRules, "[shop.example.com]", "[\"*\"]", 1), "[items]", "[\"*\"]", 1)},
			edit{webhookRules, strings.Replace(webhookRules, "[shop.example.com]", "[package-operator.run]", 1) + "\n  matchConditions: [{name: a, expression: 'true'}]"},
			"it matches all API groups", nil},
		{"crd-and-resource-in-one-phase", edit{"run/phase: last", "run/phase: crds"}, nil,
			`item.yaml:3 it is in phase "crds", and the definition of its kind, items.shop.example.com, in phase "crds"`, nil},
		{"namespace-after-use", edit{"metadata: {name: shop, annotations: {package-operator.run/phase: crds}}", "metadata: {name: shop, annotations: {package-operator.run/phase: last}}"}, nil,
			`it is in phase "last", and its Namespace in phase "last"`, nil},
		{"foreign-namespace", edit{"name: first, namespace: shop", "name: first, namespace: other"}, edit{"name: first, namespace: shop", "name: first, namespace: default"},
			`the package does not contain the namespace "other"`, nil},
		{"missing-probe", edit{"{group: apps, kind: Deployment}", "{group: apps, kind: StatefulSet}"},
			edit{"{kind: {group: apps, kind: Deployment}}", "{kind: {group: apps, kind: Deployment}, selector: {matchLabels: {package-operator.run/package: shop}}}",
				"  - name: two\n    context: {package: {metadata: {name: shop-two}}}\n", ""},
			"no probe checks shop", nil},
		{"ready-at-once", edit{"  minReadySeconds: 5\n", ""}, edit{"  minReadySeconds: 5\n", "", `"{{ .images.shop }}"`, `"{{ .images.shop }}", readinessProbe: {tcpSocket: {port: 80}}`},
			"minReadySeconds is 0", nil},
		{"custom-resource-probe", edit{"  config:\n", "  - selector: {kind: {group: shop.example.com, kind: Item}}\n    probes: [{condition: {type: Ready, status: \"True\"}}]\n  config:\n"}, nil,
			`spec.availabilityProbes[2] the phase "last" waits for Item first, whose kind the package defines`, nil},
		{"phase-never-complete", webhookOwner, append(edit{webhookPhase, strings.Replace(webhookPhase, "webhooks", "deploy", 1)}, webhookOwner...),
			`the phase "deploy" waits for it, and it has the right to write ValidatingWebhookConfiguration shop of the later phase "webhooks"`, nil},
		{"webhook-before-backend", append(edit{webhookPhase, strings.Replace(webhookPhase, "webhooks", "deploy", 1), "resources: [items]", "resources: [items, services]", "apiGroups: [shop.example.com], apiVersions", "apiGroups: ['*'], apiVersions"}, webhookOwner...),
			append(edit{webhookPhase, strings.Replace(webhookPhase, "webhooks", "deploy", 1)}, webhookOwner...), `which it needs, in phase "deploy"`, nil},
		{"keep-data", edit{", package-operator.run/deletion-policy: Keep", "", "\n-- item.yaml", claim + "\n-- item.yaml"}, nil, "deleting the package deletes every Item in the cluster, and the data in data", nil},
		{"probe-unknown-field", edit{".status.updatedReplicas", ".status.updatedReplica"}, nil,
			"spec.availabilityProbes[1].probes[1].fieldsEqual.fieldA the schema of Deployment has no field .status.updatedReplica", nil},
		{"probe-without-objects", edit{"{group: apps, kind: Deployment}", "{group: apps, kind: Deploiment}"}, nil, "spec.availabilityProbes[1].selector it selects no object", nil},
		{"keep-data", edit{", package-operator.run/deletion-policy: Keep", ""}, nil, "deleting the package deletes every Item in the cluster", nil},
		{"keep-data", edit{"\n-- item.yaml", claim + "\n-- item.yaml"}, edit{"\n-- item.yaml", strings.Replace(claim, "phase: rbac}", "phase: rbac, package-operator.run/deletion-policy: Keep}", 1) + "\n-- item.yaml"},
			"deleting the package deletes the data in data", nil},
		{"latest-image", edit{"{{ .images.shop }}", "localhost:5000/shop"}, edit{"{{ .images.shop }}", "localhost:5000/shop:v1"},
			`spec.template.spec.containers[name="shop"].image localhost:5000/shop`, nil},
		{"latest-image", edit{"{{ .images.shop }}", "{{ .config.registry }}/shop", "        shop:\n", "        registry: {type: string, description: Host., default: None}\n        shop:\n"},
			edit{"{{ .images.shop }}", "{{ .config.image }}", "        shop:\n", "        image: {type: string, description: Image., default: None}\n        shop:\n", "{metadata: {name: shop-two}}", "{metadata: {name: shop-two}}, config: {image: 'shop:latest'}"},
			"image None/shop", nil},
		{"latest-image", edit{"{{ .images.shop }}", "shop:latest"}, edit{"{{ .images.shop }}", "shop:latest@sha256:0123456789012345678901234567890123456789012345678901234567890123"}, "shop:latest", nil},
		{"unpinned-image", edit{"{{ .images.shop }}", "example.com/shop:v1"}, nil, "example.com/shop:v1", nil},
		{"secret-in-image", edit{"-- secret.yaml.gotmpl", "-- secret.yaml"}, nil, `it has a value for "password"`, nil},
		{"immutable-field", edit{"selector: {matchLabels: {app: shop}}", "selector: {matchLabels: {app: shop2}}", "labels: {app: shop}", "labels: {app: shop2}"},
			edit{"selector: {matchLabels: {app: shop}}", "selector: {matchLabels: {app: shop2}}", "labels: {app: shop}", "labels: {app: shop2}",
				"namespace: shop, annotations: {package-operator.run/phase: deploy}}\nspec:\n", "namespace: shop, annotations: {package-operator.run/phase: deploy, package-operator.run/on-immutable: Recreate}}\nspec:\n"},
			"spec.selector differs from the older package in spec.selector, which cannot change", &edit{}},
		{"immutable-field", edit{"\n-- item.yaml", strings.Replace(claim, "ReadWriteOnce", "ReadWriteMany", 1) + "\n-- item.yaml"}, edit{"\n-- item.yaml", strings.Replace(claim, "1Gi", "2Gi", 1) + "\n-- item.yaml"},
			"spec.accessModes differs", &edit{"\n-- item.yaml", claim + "\n-- item.yaml"}},
		{"definition-version-removed", edit{"  - name: v1\n    served: true\n", "  - name: v2\n    served: true\n", "shop.example.com/v1\n", "shop.example.com/v2\n"}, nil, `the version "v1" was removed`, &edit{}},
		{"definition-version-removed", edit{"  - name: v1\n    served: true\n", "  - name: v1\n    served: false\n"}, nil, `the version "v1" is no longer served`, &edit{}},
		{"leftover-in-use", edit{"kind: Namespace", "kind: NetworkPolicy"}, nil, "the older package contains its Namespace shop", &edit{}},
		{"leftover-in-use", edit{"\nkind: CustomResourceDefinition", "\nkind: Other"}, nil, "the older package contains its CustomResourceDefinition", &edit{}},
		{"finalizer", edit{"{name: first, namespace: shop,", "{name: first, namespace: shop, finalizers: [example.com/hold],"}, nil, "its deletion waits for example.com/hold", nil},
		{"template-in-plain-file", edit{`resources: ["*"]`, `resources: ["{{ .config.shop }}"]`}, edit{`resources: ["*"]`, `resources: ["{{ $labels.config }}"]`},
			"role.yaml:4 {{ .config.shop }} is installed literally", nil},
		{"number-as-float", edit{`"{{ .package.metadata.name }}"`, `"size: 1e+06"`}, edit{`"{{ .package.metadata.name }}"`, `"size: 1000000"`}, "stringData.password 1e+06 is how", nil},
		{"number-as-float", edit{crdStatus, crdSpec + crdStatus[1:], otherItem, otherItem + "spec: {size: 9007199254740993}\n"}, edit{crdStatus, crdSpec + crdStatus[1:], otherItem, otherItem + "spec: {size: 9007199254740992}\n"}, "spec.size 9007199254740993 is above 2^53", nil},
		{"replicas-and-autoscaler", edit{otherItem, otherItem + autoscaler, "  minReadySeconds: 5\n", "  minReadySeconds: 5\n  replicas: 2\n"},
			edit{otherItem, otherItem + autoscaler, "  minReadySeconds: 5\n", "  minReadySeconds: 5\n  replicas: 2\n", "  scopes: [Cluster]\n", "  scopes: [Cluster]\n  ignoredFields: [{group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}]\n"},
			"spec.replicas HorizontalPodAutoscaler shop changes it", nil},
		{"unknown-rule", edit{"metadata: {name: shop}\nspec:\n  version", "metadata: {name: shop, annotations: {lint.lockstep.run/disable: 'no-tets, no-version'}}\nspec:\n  version"}, nil, `the rule "no-tets" does not exist`, nil},
		{"no-tests", edit{"  - name: one\n    context: {package: {metadata: {name: shop}}}\n  - name: two\n    context: {package: {metadata: {name: shop-two}}}\n", ""}, nil, "the manifest has no test cases", nil},
		{"no-version", edit{"  version: 1.0.0\n", ""}, nil, "the version is missing", nil},
	}
	covered := map[string]bool{"probe-misses-failed-rollout": true, "not-rendered": true} // they have their own tests
	for _, test := range tests {
		covered[test.rule] = true
		opts := Options{}
		if test.from != nil {
			opts.From = test.from.apply(t)
		}
		if got := found(t, test.bad.apply(t), opts, test.rule); strings.Count(strings.Join(got, "\n"), test.want) != 1 {
			t.Errorf("%s: got %q, want %s once", test.rule, got, test.want)
		}
		if got := found(t, test.fine.apply(t), opts, test.rule); len(got) > 0 {
			t.Errorf("%s: found in a good package: %q", test.rule, got)
		}
	}
	for _, rule := range Rules() {
		if !covered[rule.Name] {
			t.Errorf("%s has no test", rule.Name)
		}
	}
}

// needy cannot be rendered with its default configuration.
const needy = `
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: needy}
spec:
  scopes: [Namespaced]
  phases: [{name: one}, {name: two}]
  config: {openAPIV3Schema: {type: object, required: [image], properties: {image: {type: string, description: Image.}}}}
-- items.yaml
apiVersion: example.com/v1
kind: Item
metadata: {name: a, annotations: {package-operator.run/phase: two}}
-- secret.yaml
apiVersion: v1
kind: Secret
metadata: {name: a, annotations: {package-operator.run/phase: one}}
stringData: {password: secret}
-- deploy.yaml.gotmpl
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {package-operator.run/phase: two}}
data: {image: "{{ .config.image }}"}
`

// A package that cannot be rendered is never reported as good. The parts that can be checked are
// checked, and the others are named.
func TestNotRendered(t *testing.T) {
	t.Parallel()
	want := []string{
		"error manifest.yaml test.template templates were not rendered, so the rules about their objects were not checked: these have no default: spec.config.image",
		`error secret.yaml:3 stringData it has a value for "password"`,
		"warning manifest.yaml test.template the manifest has no test cases",
		"warning manifest.yaml spec.version the version is missing",
	}
	require.Equal(t, want, found(t, files(needy), Options{}))
}

// Objects that the API server refuses are an error, as in validate.
func TestRefusedObjects(t *testing.T) {
	t.Parallel()
	var wrong violation.Violations
	_, err := Run(context.Background(), edit{"  minReadySeconds: 5\n", "  minReadySeconds: five\n"}.apply(t), Options{})
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "minReadySeconds") {
		t.Errorf("got %v", err)
	}
}

// A Job that is removed before the upgrade, or has another name by then, is not an error even if
// its template has changed.
func TestJobsThatPass(t *testing.T) {
	t.Parallel()
	with := func(file, name, spec, image string) loader.Files {
		return edit{"\n-- item.yaml", "\n-- " + file + "\napiVersion: batch/v1\nkind: Job\nmetadata: {name: '" + name + "', namespace: shop, annotations: {package-operator.run/phase: last}}\n" +
			"spec: {" + spec + "template: {spec: {restartPolicy: Never, containers: [{name: a, image: '" + image + "'}]}}}\n-- item.yaml"}.apply(t)
	}
	for reason, tc := range map[string]struct {
		file, name, spec string
		want             int
	}{
		"a Job that stays":               {"job.yaml", "clean", "", 1},
		"a Job with a TTL":               {"job.yaml", "clean", "ttlSecondsAfterFinished: 100, ", 0},
		"a Job whose name is a template": {"job.yaml.gotmpl", "clean-{{ .package.metadata.name | sha256sum | trunc 8 }}", "", 0},
		"a Job in a template":            {"job.yaml.gotmpl", "clean", "", 1},
	} {
		opts := Options{From: with(tc.file, tc.name, tc.spec, "example.com/a:v1")}
		if got := found(t, with(tc.file, tc.name, tc.spec, "example.com/a:v2"), opts, "immutable-field"); len(got) != tc.want {
			t.Errorf("%s: %q", reason, got)
		}
	}
}

// found returns the findings of some rules in short form; of all rules if none is named.
func found(t *testing.T, files loader.Files, opts Options, rules ...string) []string {
	t.Helper()
	findings, err := Run(context.Background(), files, opts)
	require.NoError(t, err)
	var lines []string
	for _, f := range findings {
		if len(rules) > 0 && !slices.Contains(rules, f.Rule) {
			continue
		}
		place := f.Path
		if f.Line > 0 {
			place += ":" + strconv.Itoa(f.Line)
		}
		lines = append(lines, strings.Join(strings.Fields(string(f.Level)+" "+place+" "+f.Field+" "+f.Details), " "))
	}
	return lines
}

func TestGoodPackageHasNoFindings(t *testing.T) {
	t.Parallel()
	if got := found(t, edit{}.apply(t), Options{From: edit{}.apply(t)}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	bad := edit{"  version: 1.0.0\n", "", "  minReadySeconds: 5\n", ""}.apply(t)
	require.Equal(t, []string{"warning manifest.yaml spec.version the version is missing", "info deploy.yaml.gotmpl spec.template.spec.containers no container has a readinessProbe or a startupProbe, and minReadySeconds is 0"}, found(t, bad, Options{}), "sorted by level, each once")
	if got := found(t, bad, Options{Disable: []string{"no-version", "ready-at-once"}}); len(got) > 0 {
		t.Errorf("disabled: %q", got)
	}
	annotated := edit{"  version: 1.0.0\n", "", "metadata: {name: shop}", "metadata: {name: shop, annotations: {lint.lockstep.run/disable: 'no-version, no-tests'}}"}.apply(t)
	if got := found(t, annotated, Options{}); len(got) > 0 {
		t.Errorf("disabled by the annotation: %q", got)
	}
	if _, err := Run(context.Background(), bad, Options{Disable: []string{"no-vertion"}}); err == nil || err.Error() != `the rule "no-vertion" does not exist. Did you mean "no-version"?` {
		t.Errorf("got %v", err)
	}
	var wrong violation.Violations
	if _, err := Run(context.Background(), edit{"kind: Service", "kind: "}.apply(t), Options{}); !errors.As(err, &wrong) {
		t.Errorf("an invalid package: %v", err)
	}
	components := edit{"  phases:", "  components: {}\n  phases:"}.apply(t)
	back := edit{"  version: 1.0.0\n", ""}.apply(t)
	for path, content := range back {
		components["components/back/"+path] = content
	}
	findings, err := Run(context.Background(), components, Options{})
	if err != nil || len(findings) != 1 || findings[0].Component != "back" || findings[0].Rule != "no-version" {
		t.Errorf("components: %+v, %v", findings, err)
	}
}

// The reference has a sentence about each rule's mistake, and one about the remedy.
func TestRulesAreDescribed(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules() {
		if !strings.HasSuffix(rule.Summary, ".") || !strings.HasSuffix(rule.Remedy, ".") {
			t.Errorf("%s: %q, %q", rule.Name, rule.Summary, rule.Remedy)
		}
	}
}
