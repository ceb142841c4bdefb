package kickstart_test

import (
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/loader/document"
)

// Any input is refused with a message, or the package made from it can be read again and none of
// its paths leads out of the folder.
//
// Code: read.go, helm.go, phase.go, namespace.go, parameter.go, write.go, manifest.go
func FuzzKickstart(f *testing.F) {
	f.Add([]byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {helm.sh/chart: shop-1.4.0}, annotations: {helm.sh/hook: 'pre-install,post-upgrade', helm.sh/hook-weight: '-5', helm.sh/resource-policy: keep}}\nspec: {template: {spec: {containers: [{name: a, image: a:v1, args: [--namespace=b]}]}}}\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {scaleTargetRef: {kind: Deployment, name: a}}\n"), true)
	f.Add([]byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nsubjects: [{kind: ServiceAccount, name: a, namespace: b}]\n"), false)
	f.Add([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: ../../x}\n"), true)
	f.Add([]byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec: {replicas: '{{', template: {spec: {containers: [{name: expression-0-, image: '::', env: [{name: 1, value: '{{ x }}'}]}]}}}\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, all bool) {
		opts := kickstart.Options{Name: "shop"}
		if all {
			opts.Parameters = kickstart.Parameters
		}
		result, err := kickstart.Make([]kickstart.Input{{Name: "in.yaml", Data: data}}, opts)
		if err != nil {
			return
		}
		for p, content := range result.Files {
			if slices.Contains(strings.Split(p, "/"), "..") || strings.HasPrefix(p, "/") || strings.Contains(p, "/.") || strings.HasPrefix(p, ".") {
				t.Errorf("path %q", p)
			}
			if strings.HasSuffix(p, ".yaml") {
				if problems := document.Each(p, content, func(*document.Document) {}); len(problems) > 0 {
					t.Errorf("the package cannot be read: %v\n%s", problems, content)
				}
			}
		}
	})
}
