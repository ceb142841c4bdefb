package tenants_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// If a ClusterPackage adopts objects, a tenant's objects with the same names cannot block it. The
// tenant's Package reports the loss and stops writing them.
func TestClusterPackageVeto(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"plain", "package"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			u := newTenant(t, env, "")
			object := func(value, namespace string) harness.Files {
				return harness.Files{
					"manifest.yaml": harness.Manifest("veto", []string{"p"}, ""),
					"object.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy%s, annotations: {package-operator.run/phase: p}}\ndata: {value: %s}\n",
						namespace, value),
				}
			}
			if of == "package" {
				u.create(t, harness.Package(u.namespace, "x", env.Push(t, "veto-x:v1", object("theirs", ""))))
				env.WaitAvailable(t, u.namespace, "x")
			} else {
				u.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "policy"}, Data: map[string]string{"value": "theirs"}})
			}
			image := env.Push(t, "veto-"+of+":v1", object("ours", ", namespace: "+u.namespace))
			pkg := harness.ClusterPackage("veto-"+of, image)
			env.Create(t, pkg)
			want := "exists already and nothing controls it"
			if of == "package" {
				want = fmt.Sprintf("belongs to ObjectDeployment %s/x: leave it out here, or release it there (kubectl package release configmap/policy -n %s)", u.namespace, u.namespace)
			}
			deploymentOfClusterSays(t, pkg.Name, want)
			harness.Edit(t, env, pkg, func(p *corev1alpha1.ClusterPackage) {
				p.Spec.CollisionProtection = corev1alpha1.CollisionProtectionNone
			})
			env.WaitAvailableWithin(t, harness.Patience, "", pkg.Name)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "policy"}}
			harness.Await(t, env, harness.Patience, cm, "to be the administrator's", func(cm *corev1.ConfigMap) error {
				if owner := metav1.GetControllerOf(cm); cm.Data["value"] != "ours" || owner == nil || owner.Kind != "ClusterObjectDeployment" {
					return fmt.Errorf("it is %v of %v", cm.Data, owner)
				}
				return nil
			})
			if of == "package" {
				deploymentSays(t, u.namespace, "x", "belongs to ClusterObjectDeployment "+pkg.Name)
			}
		})
	}
}

func deploymentOfClusterSays(t *testing.T, name, text string) {
	t.Helper()
	dep := &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	harness.Await(t, env, harness.Patience, dep, fmt.Sprintf("to say %q", text), func(dep *corev1alpha1.ClusterObjectDeployment) error {
		for _, c := range dep.Status.Conditions {
			if strings.Contains(c.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", dep.Status.Conditions)
	})
}
