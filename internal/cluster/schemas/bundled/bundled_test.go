package bundled

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, imagePullPolicy: Always, ports: [{containerPort: 80}]}]
`

func TestKubernetes(t *testing.T) {
	t.Parallel()
	bundle, err := Kubernetes()
	require.NoError(t, err)
	if !strings.HasPrefix(bundle.Version, "v1.") {
		t.Errorf("version %q", bundle.Version)
	}
	static := schemas.NewStatic(bundle.Definitions)
	for _, test := range []struct {
		reason, object string
		unknown        bool
		invalid        string
		incomplete     []string
	}{
		{reason: "a good one", object: deployment},
		{reason: "an unknown field", object: strings.Replace(deployment, "imagePullPolicy", "imagePulPolicy", 1),
			invalid: `.spec.template.spec.containers[name="web"].imagePulPolicy: field not declared in schema, did you mean "imagePullPolicy"?`},
		{reason: "a wrong type", object: strings.Replace(deployment, "spec:\n  selector", "spec:\n  replicas: two\n  selector", 1),
			invalid: ".spec.replicas: expected numeric (int or float)"},
		{reason: "a field that has to be there", object: strings.Replace(deployment, "name: web, image", "image", 1),
			incomplete: []string{`.spec.template.spec.containers[0].name: required field is missing`}},
		{reason: "none of the values", object: strings.Replace(deployment, "Always", "Sometimes", 1),
			incomplete: []string{`.spec.template.spec.containers[name="web"].imagePullPolicy: expected one of "Always", "IfNotPresent", "Never"`}},
		{reason: "none of the values, in a list", object: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [RWO]}}",
			incomplete: []string{`.spec.accessModes[0]: expected one of "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"`}},
		{reason: "a definition of a kind", object: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: a, names: {kind: A, plural: as}, scope: Cluster, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-validations: [{rule: 'true'}], properties: {a: {type: array, items: {type: string}}}}}}]}}"},
		{reason: "another group", object: "{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}}", unknown: true},
	} {
		described, err := static.Check(yamltest.Object(t, test.object))
		if described == test.unknown {
			t.Errorf("%s: described is %t", test.reason, described)
		}
		var got string
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, test.invalid, got, test.reason)
		var incomplete []string
		for _, field := range static.Incomplete(yamltest.Object(t, test.object)) {
			incomplete = append(incomplete, field.Error())
		}
		require.Equal(t, test.incomplete, incomplete, test.reason)
	}
	apps := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for path, want := range map[string]bool{
		"status.readyReplicas": true, "status.readyReplica": false, "metadata.labels.any": true, "metadata.label": false, "spec.template.spec.containers": true,
	} {
		require.Equal(t, want, static.HasField(apps, strings.Split(path, ".")), fmt.Sprintf("HasField(%s)", path))
	}
	require.Equal(t, []string{"v1", "v2"}, static.Served(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}))
}
