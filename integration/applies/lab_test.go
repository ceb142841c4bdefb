package applies_test

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// namespace has the namespaced objects of all histories.
const namespace = "applies"

//go:embed testdata/definitions.yaml
var definitions []byte

// lab is the API server, with the clients that kubectl and the judge need.
type lab struct {
	config  *rest.Config
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	scheme  *runtime.Scheme
	shapes  *shapes

	mu    sync.Mutex
	fresh map[string]fresh // by template
	names int
}

func newLab(tb testing.TB, sb *sandbox.Sandbox) *lab {
	tb.Helper()
	config := sb.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	l := &lab{config: config, scheme: runtime.NewScheme(), fresh: map[string]fresh{}}
	require.NoError(tb, errors.Join(clientgoscheme.AddToScheme(l.scheme), apiextensionsv1.AddToScheme(l.scheme)))
	var err error
	l.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(tb, err)
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(tb, err)
	l.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(asking))
	l.shapes = newShapes(asking.OpenAPIV3())
	l.create(tb, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	l.create(tb, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default", "namespace": namespace}})
	for document := range bytes.SplitSeq(definitions, []byte("\n---\n")) {
		var object map[string]any
		require.NoError(tb, yaml.Unmarshal(document, &object))
		l.create(tb, integers(object).(map[string]any))
	}
	harness.Eventually(tb, harness.Patience, "the custom kinds to be served", func(ctx context.Context) error {
		l.mapper.Reset()
		for _, name := range []string{"Strict", "Free"} {
			mapping, err := l.mapping(schema.GroupVersionKind{Group: group, Version: "v1", Kind: name})
			if err != nil {
				return err
			}
			if err := l.shapes.learn(map[string]any{"apiVersion": group + "/v1", "kind": name}); err != nil {
				return err
			}
			if _, err := l.dynamic.Resource(mapping.Resource).List(ctx, metav1.ListOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	return l
}

func (l *lab) create(tb testing.TB, object map[string]any) {
	tb.Helper()
	_, err := l.client(object).Create(tb.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(tb, err)
	}
}

func (l *lab) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// client returns the client of an object's kind, in the namespace of all histories.
func (l *lab) client(object map[string]any) dynamic.ResourceInterface {
	mapping, err := l.mapping(gvkOf(object))
	if err != nil {
		panic(err) // the kinds of this package are served
	}
	resources := l.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resources
	}
	return resources.Namespace(namespace)
}

// unique returns a name that no other history has.
func (l *lab) unique() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names++
	return fmt.Sprintf("h%dx", l.names)
}

// fresh is the API server's result for a template.
type fresh struct {
	object map[string]any
	err    error
}

// freshly returns a freshly created object of a version, without a name, or the refusal.
func (l *lab) freshly(ctx context.Context, k *kind, c choice) (map[string]any, error) {
	id := k.name + describeChoice(c)
	l.mu.Lock()
	made, known := l.fresh[id]
	l.mu.Unlock()
	if known {
		return made.object, made.err
	}
	name := l.unique()
	object := k.template(c, name)
	assign(object, []string{"metadata", "labels", corev1alpha1.CacheLabel}, corev1alpha1.CacheLabelValue) // labels can have defaults
	live, err := l.client(object).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: "fresh", FieldValidation: metav1.FieldValidationStrict,
	})
	made.err = err
	if err == nil {
		made.object = normalise(live.Object, name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh[id] = made
	return made.object, made.err
}
