package dryrun

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestUnservedIsNotAbsent: a 404 about an API does not mean that an object is absent, so a plan
// cannot promise to create it.
func TestUnservedIsNotAbsent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(http.NotFound))
	t.Cleanup(server.Close)
	writer, err := apply.NewWriter(&rest.Config{Host: server.URL}, apinames.Default.FieldManager)
	require.NoError(t, err)
	v1 := schema.GroupVersion{Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1})
	mapper.Add(v1.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
		},
	})
	c := &Cluster{Reader: reader, Writer: writer, Mapper: mapper}
	if s, err := c.readOne(t.Context(), objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, "v1"); apply.Classify(err) != apply.NotServed {
		t.Errorf("an object: %+v, %v", s, err)
	}
	if in, err := c.gather(t.Context(), Request{Scope: corev1alpha1.ScopeNamespaced, Namespace: "n", Name: "shop"}); apply.Classify(err) != apply.NotServed {
		t.Errorf("the deployment: %+v, %v", in, err)
	}
}

// behind is a discovery that still names a kind until it was queried often enough.
type behind struct {
	meta.RESTMapper
	resets, until int
}

func (b *behind) Reset() { b.resets++ }

func (b *behind) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if b.resets < b.until {
		return b.RESTMapper.RESTMapping(gk, versions...)
	}
	return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
}

// TestDiscoveryIsBehind: a kind that was removed a moment ago is not served, which is not an error.
func TestDiscoveryIsBehind(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(http.NotFound))
	t.Cleanup(server.Close)
	writer, err := apply.NewWriter(&rest.Config{Host: server.URL}, apinames.Default.FieldManager)
	require.NoError(t, err)
	lists, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	v1 := schema.GroupVersion{Group: "example.com", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1})
	mapper.Add(v1.WithKind("Dial"), meta.RESTScopeNamespace)
	discovery := &behind{RESTMapper: mapper, until: 2}
	c := &Cluster{Writer: writer, Metadata: lists, Mapper: discovery}
	s, err := c.readOne(t.Context(), objects.Key{Group: v1.Group, Kind: "Dial", Namespace: "n", Name: "a"}, "v1")
	if err != nil || s.live != nil || s.mapping != nil || discovery.resets != 2 {
		t.Errorf("an object: %+v, %v, asked %d times again", s, err, discovery.resets)
	}
	discovery.resets = 0
	crd := &definitions.CRD{}
	crd.Spec.Group, crd.Spec.Names.Kind = v1.Group, "Dial"
	if _, served, err := (&simulation{simulatedCluster: &simulatedCluster{Cluster: c}}).resources(t.Context(), crd, 1); err != nil || served || discovery.resets != 2 {
		t.Errorf("a list: served %t, %v, asked %d times again", served, err, discovery.resets)
	}
}
