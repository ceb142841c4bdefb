// Package livestate_test checks internal/cluster/apply and internal/cluster/livestate against a
// real API server: its answers to writes, and its watches. Each test has its own namespace.
package livestate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/properties"
	"lockstep.run/lockstep/test/require"
)

// shared is the control plane of all tests.
var shared *sandbox.Sandbox

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	checks := 12
	if harness.Deep() {
		checks = 300
	}
	properties.Set(checks)
	suite := harness.NewSuite()
	os.Exit(suite.Run(m, 0, func() {
		shared = sandbox.Start(suite, sandbox.WithComponents(sandbox.Etcd, sandbox.APIServer))
	}))
}

// env is the environment of one test: a namespace, and an admin client that is independent of the
// code under test.
type env struct {
	config    *rest.Config
	admin     client.Client
	namespace string
}

var sequence atomic.Int64

// unique returns a name that no other test uses.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, sequence.Add(1))
}

func newEnv(t *testing.T) *env {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	config := shared.Config()
	admin, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	e := &env{config: config, admin: admin, namespace: unique("test")}
	require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}))
	return e
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	harness.Eventually(t, harness.Patience, what, func(context.Context) error {
		if !holds() {
			return errors.New("it does not hold")
		}
		return nil
	})
}

// toJSON returns the JSON of a YAML-like literal in Go.
func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, json.NewEncoder(&buf).Encode(v))
	return buf.Bytes()
}

// obj is a JSON object.
type obj = map[string]any

// crd returns a CRD of a kind named after its group's first segment, with a
// spec of arbitrary fields; the first version is the stored one.
func crd(group, kind string, scope apiextensionsv1.ResourceScope, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	c := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ListKind: kind + "List"},
		},
	}
	field := apiextensionsv1.JSONSchemaProps{Type: "string"}
	for i, version := range versions {
		c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": field, "b": field}},
				},
			}},
		})
	}
	return c
}

// installCRD creates the CRD and waits until it is established.
func (e *env) installCRD(t *testing.T, c *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	require.NoError(t, e.admin.Create(t.Context(), c))
	e.established(t, c.Name)
}

func (e *env) established(t *testing.T, name string) {
	t.Helper()
	eventually(t, "CRD "+name+" is established", func() bool {
		live := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, e.admin.Get(t.Context(), client.ObjectKey{Name: name}, live))
		for _, c := range live.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

func mapping(group, version, kind, resource string, namespaced bool) *meta.RESTMapping {
	scope := meta.RESTScopeRoot
	if namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Resource:         schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Scope:            scope,
	}
}
