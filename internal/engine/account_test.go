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
		if got := local.accountReason(step, tc.err); got != tc.condition {
			t.Errorf("%s: reason %q, want %q", tc.reason, got, tc.condition)
		}
		own := step
		own.Account = objects.Account{}
		if text, about := local.explainAccount(own, tc.err); about && !isMissing(tc.err) {
			t.Errorf("%s, by the manager: %q", tc.reason, text)
		}
	}
}
