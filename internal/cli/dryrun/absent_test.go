package dryrun

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
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
		t.Errorf("an object: %v, %v", s, err)
	}
	if in, err := c.gather(t.Context(), Request{Scope: corev1alpha1.ScopeNamespaced, Namespace: "n", Name: "shop"}); apply.Classify(err) != apply.NotServed {
		t.Errorf("the deployment: %+v, %v", in, err)
	}
}

// Objects of the package, of Kubernetes and of other objects in the namespace are not counted.
// Objects that the package keeps are.
func TestBystanders(t *testing.T) {
	t.Parallel()
	var items []metav1.PartialObjectMetadata
	put := func(kind schema.GroupVersionKind, name, uid string, owner ...types.UID) {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)}}
		m.SetGroupVersionKind(kind)
		for _, o := range owner {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: o})
		}
		items = append(items, m)
	}
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	apps := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
	}
	put(core("ConfigMap"), "own", "1")
	put(core("ConfigMap"), "kept", "2")
	put(core("ConfigMap"), "kube-root-ca.crt", "3")
	put(core("ServiceAccount"), "default", "4")
	put(core("Event"), "e", "5")
	put(apps("Deployment"), "theirs", "6", "an operator elsewhere")
	put(apps("ReplicaSet"), "theirs-1", "7", "6")
	put(core("Pod"), "theirs-1-a", "8", "7")
	put(core("Secret"), "token", "9")
	put(schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "Thing"}, "twice", "10")
	put(schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "Thing"}, "twice", "10")
	s := &simulation{simulatedCluster: &simulatedCluster{objects: map[objects.Key]*object{
		{Kind: "ConfigMap", Namespace: "shop", Name: "own"}:  {},
		{Kind: "ConfigMap", Namespace: "shop", Name: "kept"}: {released: true},
	}}}
	keys := s.othersOf(items)
	require.Equal(t, "4 objects that do not belong to the package: ConfigMap kept, Secret token, Thing twice, and 1 more", bystanders(keys, false))
	require.Equal(t, "at least 1 object that does not belong to the package: ConfigMap kept", bystanders(keys[:1], true))
}

// A kind that cannot be listed does not hide objects of other kinds. The result states that there
// might be more.
func TestListsOfBystandersThatFail(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		err  error
		more bool
	}{
		"nothing fails":        {nil, false},
		"a missing right":      {apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil), true},
		"a webhook is down":    {apierrors.NewInternalError(errors.New("conversion webhook failed")), true},
		"the list has expired": {apierrors.NewResourceExpired("too old"), true},
		"not served any more":  {apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, ""), false},
	} {
		scheme := metadatafake.NewTestScheme()
		require.NoError(t, metav1.AddMetaToScheme(scheme))
		kept := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kept", UID: "1"}}
		c := metadatafake.NewSimpleMetadataClient(scheme, kept)
		c.PrependReactor("list", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
			if tc.err == nil {
				return true, &metav1.List{}, nil
			}
			return true, nil, tc.err
		})
		s := &simulation{simulatedCluster: &simulatedCluster{Cluster: &Cluster{Metadata: c}}}
		things := schema.GroupVersion{Group: "example.com", Version: "v1"}
		items, more, err := s.list(t.Context(), "shop", []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}, things.WithResource("things")},
			[]schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, things.WithKind("Thing")})
		if err != nil || more != tc.more || len(items) != 1 || items[0].Name != "kept" {
			t.Errorf("%s: %v, %t, %v", reason, items, more, err)
		}
	}
}
