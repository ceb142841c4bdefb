package kickstart_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/test/require"
)

// The labels that kapp finds its objects by are removed, and the labels in selectors stay.
func TestKapp(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{Name: "web", Version: "1.0.0", NoNamespaces: true}, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: store
  labels: {app: web, kapp.k14s.io/app: "17", kapp.k14s.io/association: v1.1}
  annotations:
    kapp.k14s.io/identity: v1;store/apps/Deployment/web;apps/v1
    kapp.k14s.io/original: '{}'
    kapp.k14s.io/original-diff-md5: "1"
    kapp.k14s.io/change-group: web
spec:
  selector: {matchLabels: {app: web, kapp.k14s.io/app: "17"}}
  template:
    metadata: {labels: {app: web, kapp.k14s.io/app: "17"}}
    spec: {containers: [{name: web, image: example.com/web:1.0}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: store, labels: {kapp.k14s.io/app: "17"}}
spec: {containers: [{name: web, image: example.com/web:1.0}]}
`)
	all := objectsOf(t, load(t, result))
	web, pod := all["deploy/Deployment web"], all["deploy/Pod one"]
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"the label of the Deployment", dig(web, "metadata", "labels", "kapp.k14s.io/app"), nil},
		{"the association", dig(web, "metadata", "labels", "kapp.k14s.io/association"), nil},
		{"the selector", dig(web, "spec", "selector", "matchLabels"), map[string]any{"app": "web", "kapp.k14s.io/app": "17"}},
		{"the labels of its pods", dig(web, "spec", "template", "metadata", "labels"), map[string]any{"app": "web", "kapp.k14s.io/app": "17"}},
		{"the change group", dig(web, "metadata", "annotations", "kapp.k14s.io/change-group"), "web"},
		{"the identity", dig(web, "metadata", "annotations", "kapp.k14s.io/identity"), nil},
		{"the original", dig(web, "metadata", "annotations", "kapp.k14s.io/original-diff-md5"), nil},
		{"the label of the Pod", dig(pod, "metadata", "labels", "kapp.k14s.io/app"), "17"},
		{"the notes", result.Notes, []string{"the namespace store has to exist: none was added, because of --add-namespaces=false"}},
		{"the objects", len(all), 2},
	} {
		require.Equal(t, c.want, c.got, c.what)
	}
}
