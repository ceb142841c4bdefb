package dryrun

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// TestUnservedIsNotAbsent: a 404 about an API says nothing about an object, so that
// a plan cannot promise to create it.
func TestUnservedIsNotAbsent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(http.NotFound))
	t.Cleanup(server.Close)
	writer, err := apply.NewWriter(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
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
