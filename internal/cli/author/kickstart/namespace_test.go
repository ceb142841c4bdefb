package kickstart_test

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/kickstart"
)

// A Namespace of the input belongs to the package. An added one outlives the package, with its
// content.
func TestNamespacesThatAreAdded(t *testing.T) {
	t.Parallel()
	const input = `
{apiVersion: v1, kind: Namespace, metadata: {name: own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: added}}
`
	policies := func(opts kickstart.Options) map[string]any {
		found := map[string]any{}
		for key, object := range objectsOf(t, load(t, made(t, opts, input))) {
			if dig(object, "kind") == "Namespace" {
				found[key] = dig(object, "metadata", "annotations", corev1alpha1.DeletionPolicyAnnotation)
			}
		}
		return found
	}
	got := policies(kickstart.Options{Name: "web"})
	if len(got) != 2 || got["namespaces/Namespace own"] != nil || got["namespaces/Namespace added"] != corev1alpha1.DeletionPolicyKeep {
		t.Errorf("the deletion policies are %v", got)
	}
	if got := policies(kickstart.Options{Name: "web", NoNamespaces: true}); len(got) != 1 || got["namespaces/Namespace own"] != nil {
		t.Errorf("without added ones they are %v", got)
	}
}
