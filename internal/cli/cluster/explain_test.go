package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

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
			if got := c.Explain("cannot do it", tc.err).Error(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
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
