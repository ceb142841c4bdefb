package deletion_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// If the foreign owner of a deployment is deleted in the foreground, the engine tears the
// deployment down in reverse: the garbage collector's own foreground delete is refused, and
// the owner is deleted after the deployment.
func TestForeignOwnerDeletedInTheForeground(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "foreign")
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "foreign", Name: "owner"}}
	env.Create(t, owner)
	set := loneSet("foreign")
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "foreign", Name: "owned",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ServiceAccount", Name: owner.Name, UID: owner.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}}
	dep.Spec.Selector.MatchLabels = map[string]string{"app": "owned"}
	dep.Spec.Template.Metadata.Labels = map[string]string{"app": "owned"}
	dep.Spec.Template.Spec = set.Spec.ObjectSetTemplateSpec
	env.Create(t, dep)
	c := &deletion{env: env, namespace: "foreign"}
	c.waitObjects(t, 9)
	audit, err := env.Audit()
	require.NoError(t, err)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)

	require.NoError(t, env.Client.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	env.WaitGone(t, harness.Patience, owner)
	nothingLeft(t, env, "foreign")

	entries, err := audit.Since(t.Context(), mark, sandbox.ByVerb("delete"), sandbox.ByResource("configmaps"))
	require.NoError(t, err)
	last := "99"
	for _, e := range entries {
		if e.Object.Namespace != "foreign" || e.Code >= 300 {
			continue
		}
		if e.User != harness.ManagerUser() {
			t.Errorf("%s deleted %s", e.User, e.Object.Name)
		}
		if phase := e.Object.Name[len("alone-") : len("alone-")+2]; phase > last {
			t.Errorf("%s was deleted after an object of phase %s", e.Object.Name, last)
		} else {
			last = phase
		}
	}
}
