package packages

import (
	"cmp"
	"fmt"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	own := objects.Account{Namespace: newPackage().Namespace, Name: "manager"} // for Packages in the namespace of the manager
	elsewhere := objects.Account{Namespace: "system", Name: "manager"}
	for _, tc := range []struct {
		reason   string
		accounts Accounts
		cluster  bool
		names    string
		want     string
		refused  bool
	}{
		{reason: "the manager itself"},
		{reason: "what the Package names", names: "own", want: "own"},
		{reason: "the default", accounts: Accounts{Default: "common"}, want: "common"},
		{reason: "what the Package names comes before the default", accounts: Accounts{Default: "common"}, names: "own", want: "own"},
		{reason: "one is required", accounts: Accounts{Required: true}, refused: true},
		{reason: "the default is enough", accounts: Accounts{Default: "common", Required: true}, want: "common"},
		{reason: "a ClusterPackage without an account stays without", accounts: Accounts{Default: "common", Required: true}, cluster: true},
		{reason: "a ClusterPackage can name one", cluster: true, names: "own", want: "own"},
		{reason: "of all", accounts: Accounts{Required: true, RequiredOfAll: true}, refused: true},
		{reason: "of all, the default is enough", accounts: Accounts{Default: "common", Required: true, RequiredOfAll: true}, want: "common"},
		{reason: "of all, the default is not for a ClusterPackage", accounts: Accounts{Default: "common", Required: true, RequiredOfAll: true}, cluster: true, refused: true},
		{reason: "of all, a ClusterPackage names one", accounts: Accounts{Required: true, RequiredOfAll: true}, cluster: true, names: "own", want: "own"},
		{reason: "if all need one, a ClusterPackage names the manager's", accounts: Accounts{Own: elsewhere, Required: true, RequiredOfAll: true}, cluster: true, names: "manager", want: "manager", refused: true},
		{reason: "a ClusterPackage that needs none names the manager's", accounts: Accounts{Own: elsewhere, Required: true}, cluster: true, names: "manager", want: "manager"},
		{reason: "the manager's, in its namespace", accounts: Accounts{Own: own, Required: true}, names: "manager", want: "manager", refused: true},
		{reason: "the manager's by default, in its namespace", accounts: Accounts{Own: own, Default: "manager", Required: true}, want: "manager", refused: true},
		{reason: "the manager's, if none is required", accounts: Accounts{Own: own}, names: "manager", want: "manager"},
		{reason: "one of its name in another namespace", accounts: Accounts{Own: elsewhere, Required: true, RequiredOfAll: true}, names: "manager", want: "manager"},
	} {
		pkg := corev1alpha1.GenericPackage(newPackage())
		if tc.cluster {
			pkg = &corev1alpha1.ClusterPackage{}
		}
		pkg.PackageSpec().ServiceAccountName = tc.names
		got, allowed := tc.accounts.of(pkg)
		if got != tc.want || allowed == tc.refused {
			t.Errorf("%s: %q, allowed %t", tc.reason, got, allowed)
		}
	}
}

// Only a required account needs the right to read Secrets; with a targetRef, the default account
// does.
func TestReaders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason          string
		accounts        Accounts
		cluster, remote bool
		names           string
		want, refusal   string
	}{
		{reason: "no account is required", accounts: Accounts{Default: "common"}, names: "own"},
		{reason: "the Package's", accounts: Accounts{Default: "common", Required: true}, names: "own", want: "own"},
		{reason: "the default", accounts: Accounts{Default: "common", Required: true}, want: "common"},
		{reason: "a ClusterPackage", accounts: Accounts{Default: "common", Required: true}, cluster: true},
		{reason: "a targetRef", accounts: Accounts{Default: "common", Required: true}, remote: true, want: "common"},
		{reason: "a targetRef without a default", accounts: Accounts{Required: true}, remote: true, refusal: targetAccountRequired},
		{reason: "a targetRef of a ClusterPackage", accounts: Accounts{Required: true}, remote: true, cluster: true},
		{reason: "no account", accounts: Accounts{Required: true}, refusal: accountRequired},
		{reason: "no account of a ClusterPackage", accounts: Accounts{Required: true, RequiredOfAll: true}, cluster: true, refusal: clusterAccountRequired},
		{reason: "a targetRef of a ClusterPackage, of all", accounts: Accounts{Default: "common", Required: true, RequiredOfAll: true}, remote: true, cluster: true, want: "common"},
		{reason: "a targetRef of a ClusterPackage without a default, of all", accounts: Accounts{Required: true, RequiredOfAll: true}, remote: true, cluster: true, refusal: targetAccountRequired},
		{reason: "a ClusterPackage's, if all need one", accounts: Accounts{Required: true, RequiredOfAll: true}, cluster: true, names: "own", want: "own"},
		{
			reason: "the manager's", accounts: Accounts{Required: true, RequiredOfAll: true}, cluster: true, names: "manager",
			refusal: "ServiceAccount system/manager is the manager's own, and this manager installs packages only as other ServiceAccounts: name another one of this namespace, " +
				"in spec.serviceAccountName or by --default-service-account, with the rights for the objects of the package.",
		},
		{reason: "a kubeconfig for the manager's", accounts: Accounts{Default: "manager", Required: true, RequiredOfAll: true}, remote: true, cluster: true, refusal: fmt.Sprintf(ownAccountRefused, "ServiceAccount system/manager")},
	} {
		pkg := corev1alpha1.GenericPackage(newPackage())
		if tc.cluster {
			pkg = &corev1alpha1.ClusterPackage{}
		}
		pkg.PackageSpec().ServiceAccountName = tc.names
		if tc.remote {
			pkg.PackageSpec().TargetRef = &corev1alpha1.TargetReference{}
		}
		tc.accounts.Own = objects.Account{Namespace: "system", Name: "manager"}
		require.Equal(t, tc.refusal, tc.accounts.refusal(pkg), tc.reason)
		if got := tc.accounts.reader(pkg); tc.refusal == "" && got.Name != tc.want || got.Name != "" && got.Namespace != cmp.Or(pkg.GetNamespace(), "system") {
			t.Errorf("%s: %s", tc.reason, got)
		}
	}
}

// A Package that lacks a required account is refused, and the installed version keeps its
// account.
func TestRequiredAccount(t *testing.T) {
	t.Parallel()
	pkg, dep := newPackage(), newOwned()
	dep.ObjectDeploymentSpec().Template.Spec.ServiceAccountName = "before"
	v := view{pkg: pkg, dep: dep, fingerprint: printOf(pkg), forbidden: accountRequired, now: start}
	if v.step, v.why = decide(v); v.step != stepForbid {
		t.Fatalf("the step is %v", v.step)
	}
	status := statusOf(v)
	for _, typ := range []string{corev1alpha1.ConditionInvalid, corev1alpha1.ConditionStalled} {
		found := false
		for _, c := range status.Conditions {
			found = found || c.Type == typ && c.Status == "True" && c.Reason == corev1alpha1.ReasonServiceAccountRequired && c.Message == accountRequired
		}
		if !found {
			t.Errorf("no condition %s: %+v", typ, status.Conditions)
		}
	}
	Accounts{Required: true}.copySettings(dep, pkg)
	require.Equal(t, "before", dep.ObjectDeploymentSpec().Template.Spec.ServiceAccountName, "the account became")
	Accounts{}.copySettings(dep, pkg)
	require.Equal(t, "", dep.ObjectDeploymentSpec().Template.Spec.ServiceAccountName, "the account")
}
