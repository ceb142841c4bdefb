package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

func TestParseName(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]cluster.Name{
		"cert":                {Name: "cert"},
		"package/cert":        {Scope: corev1alpha1.ScopeNamespaced, Name: "cert"},
		"pkg/cert":            {Scope: corev1alpha1.ScopeNamespaced, Name: "cert"},
		"Packages/cert":       {Scope: corev1alpha1.ScopeNamespaced, Name: "cert"},
		"ClusterPackage/cert": {Scope: corev1alpha1.ScopeCluster, Name: "cert"},
		"clpkg/cert":          {Scope: corev1alpha1.ScopeCluster, Name: "cert"},
		"clusterpackages.package-operator.run/cert": {Scope: corev1alpha1.ScopeCluster, Name: "cert"},
	} {
		got, err := cluster.ParseName(arg)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", "a/b/c", "package/", "/cert", "pod/cert"} {
		if got, err := cluster.ParseName(arg); err == nil {
			t.Errorf("%q was read as %+v", arg, got)
		}
	}
}

func pkg(name string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: "p-1"}}
}

func clusterPkg(name string) *corev1alpha1.ClusterPackage {
	return &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "c-1"}}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		objects   []client.Object
		forbidden string
		given     bool
		arg       string
		want      string
		err       string
	}{
		"a package":                            {objects: []client.Object{pkg("a")}, arg: "a", want: "package shop/a"},
		"a cluster package":                    {objects: []client.Object{clusterPkg("a")}, arg: "a", want: "clusterpackage a"},
		"both":                                 {objects: []client.Object{pkg("a"), clusterPkg("a")}, arg: "a", err: "a is ambiguous: there are package shop/a and clusterpackage a. Write package/a or clusterpackage/a, or name the namespace with -n"},
		"both, and a flag names the namespace": {objects: []client.Object{pkg("a"), clusterPkg("a")}, given: true, arg: "a", want: "package shop/a"},
		"both, with the kind":                  {objects: []client.Object{pkg("a"), clusterPkg("a")}, arg: "clpkg/a", want: "clusterpackage a"},
		"neither":                              {arg: "a", err: "there is neither a package a in namespace shop nor a clusterpackage of that name"},
		"not of that kind":                     {objects: []client.Object{pkg("a")}, arg: "clusterpackage/a", err: "there is no clusterpackage a"},
		"cannot read cluster packages": {
			objects: []client.Object{pkg("a")}, forbidden: "ClusterPackage", arg: "a", want: "package shop/a",
		},
		"cannot read one of the candidates": {
			forbidden: "ClusterPackage", arg: "a", err: "cannot read clusterpackage a:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, forbid(tc.forbidden), tc.objects...)
			c.NamespaceGiven = tc.given
			n, err := cluster.ParseName(tc.arg)
			require.NoError(t, err)
			target, _, err := c.Find(testContext(t), n)
			switch {
			case err == nil && (tc.err != "" || target.String() != tc.want):
				t.Errorf("found %s, want %q, error %q", target, tc.want, tc.err)
			case err != nil && (tc.err == "" || !strings.HasPrefix(err.Error(), tc.err)):
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

// forbid refuses reads of a kind.
func forbid(kind string) *interceptor.Funcs {
	return &interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if _, isCluster := obj.(*corev1alpha1.ClusterPackage); isCluster && kind == "ClusterPackage" {
			return apierrors.NewForbidden(corev1alpha1.Resource("clusterpackages"), key.Name, nil)
		}
		return c.Get(ctx, key, obj, opts...)
	}}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("cert"), clusterPkg("cart"), pkg("other"))
	require.Equal(t, []string{"cart", "cert"}, c.Complete(testContext(t), "c")[:2])
	require.Equal(t, []string{"package/cert", "package/other"}, c.Complete(testContext(t), "pa"))
}

// A revision with the template of an earlier one is an undo.
func TestChangeCause(t *testing.T) {
	t.Parallel()
	set := func(number int64, hash string) corev1alpha1.GenericObjectSet {
		return clustertest.Revision(number, map[string]string{corev1alpha1.HashAnnotation: hash, corev1alpha1.ChangeCauseAnnotation: "Changed."}, clustertest.PhaseOf("deploy"))
	}
	sets := []corev1alpha1.GenericObjectSet{set(1, "a"), set(2, "b"), set(3, "a"), set(4, ""), set(5, ""), set(6, "a")}
	for i, want := range []string{"Changed.", "Changed.", "Back to revision 1.", "Changed.", "Changed.", "Back to revision 3."} {
		require.Equal(t, want, cluster.ChangeCause(sets[:i], sets[i]), fmt.Sprintf("revision %d", i+1))
	}
	// A rollback activates the set of the revision that it returns to.
	sets[5].GetAnnotations()[corev1alpha1.RolledBackFromAnnotation] = "5"
	require.Equal(t, "Rolled back from revision 5.", cluster.ChangeCause(sets[:5], sets[5]))
}

func TestExplain(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	packages := corev1alpha1.Resource("packages")
	refused := &url.Error{Op: "Get", URL: "https://cluster/api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	for name, tc := range map[string]struct {
		host string
		err  error
		want string
	}{
		"kinds that are not served": {
			err:  apierrors.NewGenericServerResponse(404, "GET", packages, "a", "404 page not found", 0, true),
			want: "cannot do it: the cluster at https://cluster does not serve package-operator.run/v1alpha1. Install the engine: kubectl apply --server-side -k config",
		},
		"another kind that is not served": {
			err:  fmt.Errorf("get dials.example.com shop/a: %w", apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{}, "", "404 page not found", 0, true)),
			want: "cannot do it: get dials.example.com shop/a: the server could not find the requested resource. The cluster at https://cluster no longer serves this kind, or not yet. Try again in a moment",
		},
		"forbidden": {
			err:  apierrors.NewForbidden(packages, "a", errors.New("no")),
			want: `cannot do it: packages.package-operator.run "a" is forbidden: no. Ask an administrator for a binding to the cluster role lockstep-admin; for cluster packages, for the rights of an administrator`,
		},
		"unauthorized": {
			err:  apierrors.NewUnauthorized("expired"),
			want: "cannot do it: the cluster at https://cluster refuses these credentials: expired. Log in again, or choose another --context",
		},
		"no namespace": {
			err:  apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"),
			want: `cannot do it: namespaces "shop" not found. Create it: kubectl create namespace shop, or choose another with -n`,
		},
		"unreachable": {
			err:  refused,
			want: "cannot do it: the cluster at https://cluster cannot be reached: dial tcp: connection refused. Check that it runs, and that the context is the right one: kubectl config current-context",
		},
		"no kubeconfig": {
			host: "http://localhost:8080", err: refused,
			want: "cannot do it: no kubeconfig was found. Set KUBECONFIG or --kubeconfig",
		},
		"interrupted": {err: context.Canceled, want: "cannot do it: interrupted"},
		"other":       {err: errors.New("teapot"), want: "cannot do it: teapot"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster.Cluster{Host: "https://cluster"}
			if tc.host != "" {
				c.Host = tc.host
			}
			require.Equal(t, tc.want, c.Explain("cannot do it", tc.err).Error())
		})
	}
	if err := (&cluster.Cluster{}).Explain("cannot do it", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	// A missing object does not mean that its kind is missing.
	if cluster.Unserved(apierrors.NewNotFound(packages, "a")) {
		t.Error("a package that does not exist counts as a kind that is not served")
	}
}

// The API server refuses selectors with values that no label can have.
func TestSnapshotOfALongName(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t)
	c.WithWatch = interceptor.NewClient(c.WithWatch, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewBadRequest("must be no more than 63 bytes")
	}})
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: strings.Repeat("x", 64)}
	_, _, err := c.Snapshot(t.Context(), target, &corev1alpha1.Package{})
	require.NoError(t, err)
}
