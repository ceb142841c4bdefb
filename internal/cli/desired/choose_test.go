package desired_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

var shopAPI = &corev1alpha1.APIReference{APIVersion: "example.com/v1", Kind: "Shop"}

// byAPI returns an installed package of a namespace that was chosen for an API. An empty name means
// that none is chosen yet.
func byAPI(namespace, chosen string) *corev1alpha1.Package {
	pkg := clustertest.Following("", "1.0.0")
	pkg.Namespace, pkg.Spec.PackageRef = namespace, &corev1alpha1.PackageReference{API: shopAPI}
	if pkg.Status.Resolved.CatalogName, pkg.Status.LastAttempted.PackageName, pkg.Status.LastAttempted.API = chosen, chosen, shopAPI; chosen == "" {
		pkg.Status = corev1alpha1.PackageStatus{}
	}
	return pkg
}

// lists calls each before a list is read.
func lists(t *testing.T, c *cluster.Cluster, each func(client.ObjectList) error) *cluster.Cluster {
	t.Helper()
	c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := each(list); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	})
	return c
}

// The whole catalogue is read once, however many packages name an API. It is not read for packages
// that were chosen before.
func TestOutdatedReadsTheCatalogueOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		chosen string
		want   int
	}{"chosen before": {"shop.example.com", 0}, "not yet": {"", 1}} {
		reads := map[string]int{}
		c := lists(t, clustertest.FakeCluster(t, clustertest.OfferedAs("", "1.0.0", "2.0.0")), func(list client.ObjectList) error {
			reads[fmt.Sprintf("%T", list)]++
			return nil
		})
		var packages []corev1alpha1.GenericPackage
		for _, namespace := range []string{"a", "b", "c"} {
			packages = append(packages, byAPI(namespace, tc.chosen), byAPI(namespace, tc.chosen))
		}
		rows, _, err := desired.OutdatedOf(t.Context(), c, packages)
		if err != nil || len(rows) != len(packages) || rows[5].Package != "shop.example.com" || rows[5].Newest != "2.0.0" {
			t.Fatalf("%s: %+v, %v", name, rows, err)
		}
		require.Equal(t, tc.want, reads["*v1alpha1.ClusterAvailablePackageList"], fmt.Sprintf("%s: the offers of the cluster are read", name))
		require.Equal(t, 3*tc.want, reads["*v1alpha1.AvailablePackageList"], fmt.Sprintf("%s: the offers of the namespaces are read", name))
	}
}

// If a repository was never fetched, neither the manager nor a command chooses a package by API.
func TestNameForWaitsForRepositories(t *testing.T) {
	t.Parallel()
	pending := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "official"}}
	paused := pending.DeepCopy()
	paused.Spec.Paused = true
	refusal := "shop.example.com provides example.com/v1 Shop, and others may: pause repositories that cannot be fetched, or set packageRef.name in the place of api; " +
		"not fetched yet: PackageRepository/official. See: kubectl package available -n shop"
	for name, tc := range map[string]struct {
		repository *corev1alpha1.PackageRepository
		old        *corev1alpha1.Package
		forbidden  bool
		want       string
	}{
		"never fetched":        {pending, byAPI("shop", ""), false, refusal},
		"and chosen before":    {pending, byAPI("shop", "shop.example.com"), false, "shop.example.com"},
		"paused":               {paused, byAPI("shop", ""), false, "shop.example.com"},
		"that may not be read": {pending, byAPI("shop", ""), true, "shop.example.com; you may not read PackageRepositories and ClusterPackageRepositories: the manager does not choose shop.example.com for example.com/v1 Shop until all of them were fetched"},
	} {
		c := lists(t, clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0"), tc.repository), func(list client.ObjectList) error {
			switch list.(type) {
			case *corev1alpha1.PackageRepositoryList, *corev1alpha1.ClusterPackageRepositoryList:
				if tc.forbidden {
					return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not these"))
				}
			}
			return nil
		})
		choose := desired.ChooserFor(c, "shop")
		got, err := choose.NameFor(t.Context(), tc.old, tc.old.Spec.PackageRef)
		if err != nil {
			got = err.Error()
		}
		if got = strings.Join(append([]string{got}, choose.Warnings...), "; "); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
