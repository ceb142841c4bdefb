package describe

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func load(t *testing.T, files loader.Files, cluster bool) *loader.Package {
	t.Helper()
	pkg, _, err := loader.Preview(context.Background(), files, loader.PreviewOptions{Cluster: cluster, LockedImages: true})
	require.NoError(t, err)
	return pkg
}

func TestTextOfTheExample(t *testing.T) {
	t.Parallel()
	files, err := loader.ReadFolder("../../../examples/operator/cluster")
	require.NoError(t, err)
	report, err := Of(load(t, files, true), files, "", nil)
	require.NoError(t, err)
	got := Text(report, terminal.Plain())
	golden.Text(t, "testdata/operator.txt", got)
}

const everything = `
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: shop}
spec:
  version: 1.0.0
  provider: us
  display: {name: Shop, shortDescription: Sells., support: Nobody., requirements: 1 GB, keywords: [shop, trade], owners: [{name: Eve, email: eve@example.com}, {name: Us}], links: [{name: Website, url: "https://shop.example.com"}, {name: Source, url: "https://git.example.com/shop"}]}
  scopes: [Namespaced, Cluster]
  phases: [{name: one}]
  images: [{name: app, image: "example.com/app:v1"}]
  constraints:
  - platformVersion: {name: Kubernetes, range: ">=1.29"}
  - platform: [OpenShift, Kubernetes]
  - uniqueInScope: {}
  - uniqueInScope: {scope: Cluster}
  dependencies:
  - {name: db, optional: true, package: {name: db.example.com, version: ">1"}}
  - {name: cert, optional: true, api: {apiVersion: cert-manager.io/v1, kind: Certificate}}
  permissions: {serviceAccountName: web, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}
  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}, selector: {matchLabels: {a: b}}}
    probes: [{fieldsEqual: {fieldA: .data.a, fieldB: .data.b}}]
  config:
    openAPIV3Schema:
      type: object
      required: [name]
      properties:
        name: {type: string, minLength: 1, pattern: "^a", format: hostname, default: ab}
        secret: {type: string, format: password, default: hunter2}
        large: {type: integer, maximum: 1000000000}
        ports: {type: array, maxItems: 3, items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1, exclusiveMaximum: true, maximum: 9}}}}
        limits: {type: object, additionalProperties: {type: object, properties: {cpu: {x-kubernetes-int-or-string: true}}}}
        inner: {type: object, x-kubernetes-validations: [{rule: "self.a == 'a'", message: a is a}], properties: {a: {type: string, enum: [a, b]}}}
`

// Control characters of a package do not reach the terminal, whatever type their value has.
func TestLinesAreEscaped(t *testing.T) {
	t.Parallel()
	w := writerFor(terminal.Plain())
	w.line("%s %s %d", "a\x1b[2J", schema.GroupKind{Group: "b\x1b[2J", Kind: "Pod\x1b[2J"}, 1)
	if strings.Contains(w.String(), "\x1b") {
		t.Errorf("got %q", w.String())
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	files := loader.Files{
		"manifest.yaml":      []byte(everything),
		"README.md":          []byte("# Shop\n\nSells \x1b[31mthings.\n\n"),
		"manifest.lock.yaml": []byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nmetadata: {name: shop}\nspec: {images: [{name: app, image: 'example.com/app:v1', digest: 'sha256:0123456789012345678901234567890123456789012345678901234567890123'}]}\n"),
		"cm.yaml":            []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: b}, annotations: {package-operator.run/phase: one, package-operator.run/deletion-policy: Keep}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {package-operator.run/phase: one}}\n"),
		"rbac.yaml":          []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, annotations: {package-operator.run/phase: one}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}\nsubjects: [{kind: User, name: \"e\\u001bve\"}]\n"),
	}
	report, err := Of(load(t, files, false), files, "back", []string{"back", "front"})
	require.NoError(t, err)
	got := Text(report, terminal.Plain())
	golden.Text(t, "testdata/everything.txt", got)
}

func schemaOf(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	props := &apiextensionsv1.JSONSchemaProps{}
	require.NoError(t, yaml.Unmarshal([]byte(text), props))
	return props
}

const exampleSchema = `
type: object
required: [name, ports, front]
properties:
  name: {type: string, description: "The name.\nOf the shop.", pattern: "^[a-z]{3,}-v[0-9]+$", minLength: 8}
  replicas: {type: integer, minimum: 1, maximum: 9, default: 3}
  ratio: {type: number, minimum: 0, exclusiveMinimum: true, multipleOf: 0.5}
  since: {type: string, format: date-time}
  level: {type: string, enum: [debug, info], default: info}
  token: {type: string, format: password, default: hunter2}
  word: {type: string, default: "on"}
  text: {type: string, default: "two\nlines"}
  port: {x-kubernetes-int-or-string: true, default: 80}
  ports: {type: array, minItems: 2, items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1}, name: {type: string}}}}
  labels: {type: object, additionalProperties: {type: string}, default: {a: b}}
  front:
    type: object
    required: [color]
    properties:
      color: {type: string, enum: [red, blue]}
      size: {type: object, properties: {width: {type: integer}}}
  cache:
    type: object
    default: {}
    properties:
      size: {type: string, default: 1Gi, description: How much is kept.}
      kind: {type: string}
  back:
    type: object
    description: The back.
    properties: {color: {type: string, default: green}}
`

func TestExample(t *testing.T) {
	t.Parallel()
	got := Example(schemaOf(t, exampleSchema))
	golden.Text(t, "testdata/example.yaml", got)
	if strings.Contains(got, "hunter2") {
		t.Error("a password is in it")
	}
}
