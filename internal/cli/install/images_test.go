package install_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

const origin = "origin.example.com/acme/shop:v1"

// An image that the manager would refuse is not installed.
func TestImagesThatAreNotVerified(t *testing.T) {
	t.Parallel()
	host, own := imagetest.ServeRegistry(t), signed.NewPair(t)
	imagetest.PushRandom(t, host+"/team/shop:v1")
	c := clustertest.FakeCluster(t, clustertest.Acme(host), clustertest.AcmeKeys(own.Public))
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", origin, "web", "-n", "shop", "--wait=false")
	if got.Code != 1 || !strings.Contains(got.Err, "NoSignature: the image "+origin+" is not verified: the registry has no signature of sha256:") || !strings.Contains(got.Err, "(ImageConfig acme)") {
		t.Errorf("%+v", got)
	}
	packages := &corev1alpha1.PackageList{}
	if err := c.List(t.Context(), packages); err != nil || len(packages.Items) > 0 {
		t.Errorf("%v, %d packages", err, len(packages.Items))
	}
}

// An image is read from the place that ImageConfigs rewrite it to, by its verified digest. Parts
// that the user may not read are reported.
func TestTrust(t *testing.T) {
	t.Parallel()
	host, own := imagetest.ServeRegistry(t), signed.NewPair(t)
	imagetest.PushRandom(t, host+"/team/shop:v1")
	digest := own.Sign(t, host+"/team/shop:v1")
	forbidden := func(resource string) error { return apierrors.NewForbidden(corev1alpha1.Resource(resource), "", nil) }
	for name, tc := range map[string]struct {
		funcs     interceptor.Funcs
		ref, warn string
	}{
		"as the manager": {ref: host + "/team/shop@" + digest},
		"no ImageConfigs": {
			funcs: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return forbidden("imageconfigs")
			}},
			ref: origin, warn: "you may not read the ImageConfigs of the cluster",
		},
		"no keys": {
			funcs: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return forbidden("secrets")
			}},
			ref: host + "/team/shop@" + digest, warn: "is not verified: you may not read the keys of the ImageConfig acme",
		},
	} {
		c := clustertest.FakeCluster(t, clustertest.Acme(host), clustertest.AcmeKeys(own.Public))
		c.WithWatch = interceptor.NewClient(c.WithWatch, tc.funcs)
		images, err := desired.ReadImages(t.Context(), c, corev1alpha1.DefaultNamespace)
		require.NoError(t, err)
		got, err := images.Trust(t.Context(), &content.RegistryFlags{}, origin, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if warnings := strings.Join(got.Warnings, "\n"); got.Ref != tc.ref || (warnings == "") != (tc.warn == "") || !strings.Contains(warnings, tc.warn) {
			t.Errorf("%s: %s, %s", name, got.Ref, warnings)
		}
		if images.Rewrite(origin) != tc.ref[:strings.LastIndex(tc.ref, "/")]+"/shop:v1" {
			t.Errorf("%s: %s", name, images.Rewrite(origin))
		}
	}
}
