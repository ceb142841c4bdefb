package engine

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

func TestExplainAccount(t *testing.T) {
	t.Parallel()
	account, local := objects.Account{Namespace: "shop", Name: "deployer"}, New(objects.Owner{Names: apinames.Default})
	step := phases.Step{Key: objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Account: account}
	refused := func(message string) error {
		return &apply.Error{Verb: "apply", Resource: "deployments", Key: step.Key, Err: &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusForbidden, Message: message,
		}}}
	}
	for _, tc := range []struct {
		reason, want, condition string
		err                     error
	}{
		{
			"a right", "ServiceAccount shop/deployer may not patch deployments.apps: grant it that right; " +
				"kubectl auth can-i patch deployments.apps -n shop --as=system:serviceaccount:shop:deployer", corev1alpha1.ReasonForbidden,
			refused(`deployments.apps "web" is forbidden: User "system:serviceaccount:shop:deployer" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`),
		},
		{
			"the manager's right", "the manager may not impersonate ServiceAccount shop/deployer: give it the verb impersonate on serviceaccounts, as its ClusterRole has it",
			corev1alpha1.ReasonForbidden,
			refused(`serviceaccounts "deployer" is forbidden: User "m" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`),
		},
		{
			"no account", "ServiceAccount shop/deployer does not exist: create it, with the rights for the objects of the package, or name another one in spec.serviceAccountName",
			corev1alpha1.ReasonServiceAccountMissing, fmt.Errorf("wrapped: %w", &MissingAccountError{account}),
		},
		{"a webhook", "", "", refused(`admission webhook "w" denied the request: no`)},
		{"the network", "", "", errors.New("connection refused")},
	} {
		got, about := local.explainAccount(step, tc.err)
		if got != tc.want || about != (tc.want != "") {
			t.Errorf("%s: %q", tc.reason, got)
		}
		require.Equal(t, tc.condition, local.accountReason(step, tc.err), fmt.Sprintf("%s: reason", tc.reason))
		own := step
		own.Account = objects.Account{}
		if text, about := local.explainAccount(own, tc.err); about && !isMissing(tc.err) {
			t.Errorf("%s, by the manager: %q", tc.reason, text)
		}
	}
}

// TestExplainTarget: the message names the rule that grants a missing right to the user of a
// kubeconfig, and repeats only names from the words of a target.
func TestExplainTarget(t *testing.T) {
	t.Parallel()
	const user = `User "system:serviceaccount:stores:poor" cannot `
	for message, want := range map[string]string{
		`configmaps is forbidden: ` + user + `list resource "configmaps" in API group "" in the namespace "stores"`: "the user of the kubeconfig may not list configmaps in the target: " +
			`bind a ClusterRole to it there with the rule {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}`,
		`deployments.apps is forbidden: ` + user + `watch resource "deployments" in API group "apps" at the cluster scope`: "the user of the kubeconfig may not watch deployments in the target: " +
			`bind a ClusterRole to it there with the rule {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}`,
		`configmaps "a" is forbidden: ` + user + `patch resource "configmaps" in API group "" in the namespace "stores"`: "the user of the kubeconfig may not patch configmaps in the target: " +
			`bind a Role in the namespace stores, or a ClusterRole, to it there with the rule {apiGroups: [""], resources: [configmaps], verbs: [get, create, patch, delete]}`,
		`namespaces "a" is forbidden: ` + user + `delete resource "namespaces" in API group "" at the cluster scope`: "the user of the kubeconfig may not delete namespaces in the target: " +
			`bind a ClusterRole to it there with the rule {apiGroups: [""], resources: [namespaces], verbs: [get, create, patch, delete]}`,
		`customresourcedefinitions.apiextensions.k8s.io is forbidden: ` + user + `list resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`: "the user of the kubeconfig may not list customresourcedefinitions in the target: " +
			`bind a ClusterRole to it there with the rule {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}`,
		`roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:`: "the user of the kubeconfig may not grant rights that it does not have itself: " +
			"give it these in the target, or the verb escalate on roles and clusterroles, and bind for bindings",
		`configmaps is forbidden: ` + user + `list resource "hunter2 $(reboot)" in API group ""`: "",
		`admission webhook "w" denied the request: no`:                                           "",
	} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Message: message}}
		got, about := ExplainTarget(err, false)
		if got != want || about != (want != "") {
			t.Errorf("%s:\ngot  %s\nwant %s", message, got, want)
		}
		reason := ""
		if want != "" {
			reason = corev1alpha1.ReasonForbidden
		}
		remote := New(objects.Owner{Names: apinames.Default, Cluster: "home"})
		require.Equal(t, reason, remote.accountReason(phases.Step{}, err), fmt.Sprintf("%s: reason", message))
	}
	const read = `the user of the kubeconfig may not list configmaps in the target: ` +
		`bind a Role in the namespace openshift-config, or a ClusterRole, to it there with the rule {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}`
	err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Message: `configmaps "c" is forbidden: ` + user + `list resource "configmaps" in API group "" in the namespace "openshift-config"`}}
	if got, _ := ExplainTarget(err, true); got != read {
		t.Errorf("objects that are only read:\n%s", got)
	}
}
