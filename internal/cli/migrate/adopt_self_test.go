package migrate

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/objects"
)

// What tools write for themselves may change; what the engine or a cloud reads may not.
func TestLosses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		field dryrun.Field
		lost  bool
	}{
		"a field":                      {dryrun.Field{Path: "spec.replicas", Before: 3, After: 2}, true},
		"the image":                    {dryrun.Field{Path: "spec.template.spec.containers[name=manager].image", Before: "a", After: "b"}, false},
		"a label of Helm":              {dryrun.Field{Path: `metadata.labels["helm.sh/chart"]`, Before: "lockstep"}, false},
		"a label of who manages it":    {dryrun.Field{Path: `metadata.labels["app.kubernetes.io/managed-by"]`, Before: "Helm"}, false},
		"a label of a user":            {dryrun.Field{Path: "metadata.labels.team", Before: "a", After: "b"}, true},
		"an annotation of a cloud":     {dryrun.Field{Path: `metadata.annotations["eks.amazonaws.com/role-arn"]`, Before: "arn"}, true},
		"one that is added":            {dryrun.Field{Path: `metadata.annotations["example.com/x"]`, After: "y"}, false},
		"all annotations":              {dryrun.Field{Path: "metadata.annotations", Before: map[string]any{"meta.helm.sh/release-name": "x", "eks.amazonaws.com/role-arn": "arn"}}, true},
		"all annotations, by tools":    {dryrun.Field{Path: "metadata.annotations", Before: map[string]any{"meta.helm.sh/release-name": "x"}}, false},
		"a finalizer":                  {dryrun.Field{Path: "metadata.finalizers", Before: []any{"x"}}, true},
		"a domain that contains a one": {dryrun.Field{Path: `metadata.annotations["app.kubernetes.io.example/x"]`, Before: "y"}, true},
	} {
		plan := &dryrun.Plan{Phases: []dryrun.Phase{{Changes: []dryrun.Change{{Action: dryrun.ActionTakeOver, Kind: "ServiceAccount", Name: "x", Fields: []dryrun.Field{tc.field}}}}}}
		if lost := losses(plan); (len(lost) > 0) != tc.lost {
			t.Errorf("%s: lost are %v, want some: %t", name, lost, tc.lost)
		}
	}
}

// After another package no record of Helm is left, so that neither would own the engine.
func TestOnlyTheOwnPackage(t *testing.T) {
	t.Parallel()
	manager := objects.Key{Group: "apps", Kind: "Deployment", Namespace: corev1alpha1.DefaultNamespace, Name: engineDeployment}
	elsewhere := manager
	elsewhere.Namespace = "default"
	for name, tc := range map[string]struct {
		name    string
		brought objects.Key
		own     bool
	}{
		"the own one":                   {ownCatalogName, manager, true},
		"without the Deployment":        {ownCatalogName, objects.Key{Kind: "ConfigMap", Namespace: corev1alpha1.DefaultNamespace, Name: engineDeployment}, false},
		"with it in another namespace":  {ownCatalogName, elsewhere, false},
		"another one that brings these": {"web.example.com", manager, false},
	} {
		if err := isOwn(tc.name, map[objects.Key]string{tc.brought: "deploy"}); (err == nil) != tc.own {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Objects of Helm that the package does not bring are named.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	in := &installation{recorded: []objects.Key{{Kind: "Service", Namespace: "x", Name: "lockstep"}, {Kind: "Secret", Namespace: "x", Name: "lockstep"}}}
	got := leftBehind([]*installation{in}, map[objects.Key]string{{Kind: "Service", Namespace: "x", Name: "lockstep"}: "deploy"})
	if want := []string{"Secret x/lockstep stays as it is: the package does not bring it"}; !slices.Equal(got, want) {
		t.Errorf("it is %q, want %q", got, want)
	}
}

// A manager that installs nothing by its own rights cannot install its own package without an account.
func TestAdoptableWithoutAnAccount(t *testing.T) {
	t.Parallel()
	manager := func(c corev1.Container) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{c}
		return d
	}
	for name, tc := range map[string]struct {
		container corev1.Container
		account   string
		refused   bool
	}{
		"without the flag":     {corev1.Container{}, "", false},
		"of namespaces only":   {corev1.Container{Args: []string{"--require-service-account"}}, "", false},
		"of all":               {corev1.Container{Args: []string{"--require-service-account=all"}}, "", true},
		"of all, by a value":   {corev1.Container{Env: []corev1.EnvVar{{Name: "LOCKSTEP_REQUIRE_SERVICE_ACCOUNT", Value: "all"}}}, "", true},
		"of all, with account": {corev1.Container{Args: []string{"--require-service-account=all"}}, "engine", false},
	} {
		f := former{holder: "lockstep-manager-1", ours: manager(tc.container)}
		f.own.pkg = &corev1alpha1.ClusterPackage{}
		f.own.pkg.Spec.ServiceAccountName = tc.account
		if err := f.adoptable(); (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "--require-service-account=all") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
