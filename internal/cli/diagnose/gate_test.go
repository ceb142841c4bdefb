package diagnose

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// A phase that waits for what a later phase brings is explained by that, and so is one that waits for a custom resource
// of the package.
func TestGate(t *testing.T) {
	t.Parallel()
	phases := []corev1alpha1.ObjectSetTemplatePhase{{Name: "crds"}, {Name: "deploy"}, {Name: "late"}}
	in := func(phase, text string) objectdiff.Object {
		o := objectdiff.Object{Phase: phase}
		require.NoError(t, yaml.Unmarshal([]byte(text), &o.Value))
		o.Key = objectdiff.KeyOf(o.Value, "")
		return o
	}
	const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}"
	definition := in("crds", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, names: {kind: Thing}}}")
	web := in("deploy", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {spec: {volumes: [{name: a, configMap: {name: settings}}]}}}}")
	thing := in("deploy", "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: shop}}")
	for name, tc := range map[string]struct {
		all  []objectdiff.Object
		key  objects.Key
		want string
	}{
		"of a later phase":  {[]objectdiff.Object{web, in("late", settings)}, web.Key, "Deployment shop/web is not ready, and it mounts ConfigMap shop/settings of the later phase late, which is written only when the phase deploy is complete"},
		"of the same phase": {[]objectdiff.Object{web, in("deploy", settings)}, web.Key, ""},
		"a custom resource": {[]objectdiff.Object{definition, thing}, thing.Key, "Thing shop/a is of a kind of the package itself"},
		"another's kind":    {[]objectdiff.Object{thing}, thing.Key, ""},
	} {
		found := gateFindings(tc.key, tc.all, phases)
		text := ""
		if len(found) > 0 {
			text = found[0].cause.text
		}
		if (text == "") != (tc.want == "") || !strings.HasPrefix(text, tc.want) {
			t.Errorf("%s: got %q, want %q", name, text, tc.want)
		}
	}
}
