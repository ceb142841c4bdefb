package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

var kinds = []string{
	"Package", "ClusterPackage",
	"ObjectDeployment", "ClusterObjectDeployment",
	"ObjectSet", "ClusterObjectSet",
	"ObjectSetPhase", "ClusterObjectSetPhase",
	"ObjectSlice", "ClusterObjectSlice",
	"ObjectTemplate", "ClusterObjectTemplate",
	"PackageRepository", "ClusterPackageRepository",
	"AvailablePackage", "ClusterAvailablePackage",
	"HostedClusterPackage",
	"ImageConfig",
}

var (
	_ corev1alpha1.GenericPackage           = (*corev1alpha1.Package)(nil)
	_ corev1alpha1.GenericPackage           = (*corev1alpha1.ClusterPackage)(nil)
	_ corev1alpha1.GenericObjectDeployment  = (*corev1alpha1.ObjectDeployment)(nil)
	_ corev1alpha1.GenericObjectDeployment  = (*corev1alpha1.ClusterObjectDeployment)(nil)
	_ corev1alpha1.GenericObjectSet         = (*corev1alpha1.ObjectSet)(nil)
	_ corev1alpha1.GenericObjectSet         = (*corev1alpha1.ClusterObjectSet)(nil)
	_ corev1alpha1.GenericObjectSetPhase    = (*corev1alpha1.ObjectSetPhase)(nil)
	_ corev1alpha1.GenericObjectSetPhase    = (*corev1alpha1.ClusterObjectSetPhase)(nil)
	_ corev1alpha1.GenericObjectSlice       = (*corev1alpha1.ObjectSlice)(nil)
	_ corev1alpha1.GenericObjectSlice       = (*corev1alpha1.ClusterObjectSlice)(nil)
	_ corev1alpha1.GenericObjectTemplate    = (*corev1alpha1.ObjectTemplate)(nil)
	_ corev1alpha1.GenericObjectTemplate    = (*corev1alpha1.ClusterObjectTemplate)(nil)
	_ corev1alpha1.GenericPackageRepository = (*corev1alpha1.PackageRepository)(nil)
	_ corev1alpha1.GenericPackageRepository = (*corev1alpha1.ClusterPackageRepository)(nil)
	_ corev1alpha1.GenericAvailablePackage  = (*corev1alpha1.AvailablePackage)(nil)
	_ corev1alpha1.GenericAvailablePackage  = (*corev1alpha1.ClusterAvailablePackage)(nil)
	_ corev1alpha1.Conditioned              = (*corev1alpha1.HostedClusterPackage)(nil)
	_ corev1alpha1.Conditioned              = (*corev1alpha1.ImageConfig)(nil)

	_ corev1alpha1.GenericObjectSetPhaseList = (*corev1alpha1.ObjectSetPhaseList)(nil)
	_ corev1alpha1.GenericObjectSetPhaseList = (*corev1alpha1.ClusterObjectSetPhaseList)(nil)
	_ corev1alpha1.GenericObjectTemplateList = (*corev1alpha1.ObjectTemplateList)(nil)
	_ corev1alpha1.GenericObjectTemplateList = (*corev1alpha1.ClusterObjectTemplateList)(nil)
)

func TestSchemeKnowsEveryKind(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	for _, kind := range kinds {
		for _, name := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(corev1alpha1.GroupVersion.WithKind(name)) {
				t.Errorf("the scheme does not know %s", name)
			}
		}
	}
}

func TestScopesMakeTheirTwins(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		for kind, object := range map[string]runtime.Object{
			"Package": scope.NewPackage(), "PackageList": scope.NewPackageList(),
			"ObjectDeployment": scope.NewObjectDeployment(), "ObjectDeploymentList": scope.NewObjectDeploymentList(),
			"ObjectSet": scope.NewObjectSet(), "ObjectSetList": scope.NewObjectSetList(),
			"PackageRepository": scope.NewPackageRepository(), "PackageRepositoryList": scope.NewPackageRepositoryList(),
			"AvailablePackage": scope.NewAvailablePackage(), "AvailablePackageList": scope.NewAvailablePackageList(),
			"ObjectSlice": scope.NewObjectSlice(), "ObjectSliceList": scope.NewObjectSliceList(),
		} {
			gvks, _, err := scheme.ObjectKinds(object)
			require.NoError(t, err)
			if got, want := gvks[0].Kind, scope.Kind(kind); got != want {
				t.Errorf("%s makes a %s, want %s", scope, got, want)
			}
		}
	}
}

func TestScopeOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, corev1alpha1.ScopeCluster, corev1alpha1.ScopeOf(""), "without a namespace")
	require.Equal(t, corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeOf("team-a"), "in a namespace")
}

// Accessors of both twins reach the object itself, not a copy.
func TestAccessorsShareMemory(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	for _, kind := range kinds {
		object, err := scheme.New(corev1alpha1.GroupVersion.WithKind(kind))
		require.NoError(t, err)
		if conditioned, ok := object.(corev1alpha1.Conditioned); ok {
			*conditioned.StatusConditions() = []metav1.Condition{{Type: "Ready"}}
			if conditions := reflect.ValueOf(object).Elem().FieldByName("Status").FieldByName("Conditions"); conditions.Len() != 1 {
				t.Errorf("%s: StatusConditions returns a copy", kind)
			}
		}
		for _, half := range []string{"Spec", "Status"} {
			field := reflect.ValueOf(object).Elem().FieldByName(half)
			base := kind
			if len(kind) > 7 && kind[:7] == "Cluster" {
				base = kind[7:]
			}
			method := reflect.ValueOf(object).MethodByName(base + half)
			if !field.IsValid() || !method.IsValid() {
				continue
			}
			if method.Call(nil)[0].Pointer() != field.Addr().Pointer() {
				t.Errorf("%s: %s%s returns a copy", kind, base, half)
			}
		}
	}
	slice := &corev1alpha1.ClusterObjectSlice{}
	*slice.SliceObjects() = make([]corev1alpha1.ObjectSetObject, 2)
	require.Equal(t, 2, len(slice.Objects), "SliceObjects returns a copy")
}

func TestListsReturnTheirItems(t *testing.T) {
	t.Parallel()
	list := &corev1alpha1.ClusterObjectSetList{Items: make([]corev1alpha1.ClusterObjectSet, 2)}
	list.GenericObjectSets()[1].SetName("second")
	require.Equal(t, "second", list.Items[1].Name, "GenericObjectSets returns copies")
}

func TestOpenedPhases(t *testing.T) {
	t.Parallel()
	for state, want := range map[corev1alpha1.PhaseState]bool{
		"":                                 false,
		corev1alpha1.PhaseStateWaiting:     false,
		corev1alpha1.PhaseStateApplying:    true,
		corev1alpha1.PhaseStateProbing:     true,
		corev1alpha1.PhaseStateReady:       true,
		corev1alpha1.PhaseStateUnready:     true,
		corev1alpha1.PhaseStateTearingDown: false,
		corev1alpha1.PhaseStateGone:        false,
	} {
		require.Equal(t, want, state.Opened(), fmt.Sprintf("%q is opened", state))
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	return scheme
}

// What Package Operator wrote has to survive a read and a write by this engine.
func TestPackageOperatorObjectsRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	seen := map[string]bool{}
	for _, document := range append(documents(t, "testdata/packageoperator.yaml"), documents(t, "testdata/repositories.yaml")...) {
		var want map[string]any
		require.NoError(t, json.Unmarshal(document, &want))
		kind, _ := want["kind"].(string)
		seen[kind] = true
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object, err := scheme.New(corev1alpha1.GroupVersion.WithKind(kind))
			require.NoError(t, err)
			strict := json.NewDecoder(bytes.NewReader(document))
			strict.DisallowUnknownFields()
			require.NoError(t, strict.Decode(object))
			// A copy, so that the generated code is part of it.
			written, err := json.Marshal(object.DeepCopyObject())
			require.NoError(t, err)
			require.Equal(t, decodeNumbers(t, document), decodeNumbers(t, written), "read and written")
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			require.NoError(t, err)
			converted, err := json.Marshal(content)
			require.NoError(t, err)
			require.Equal(t, decodeNumbers(t, document), decodeNumbers(t, converted), "converted to unstructured")
		})
	}
	for _, kind := range kinds {
		if !seen[kind] {
			t.Errorf("there is no %s in the test data", kind)
		}
	}
}

// documents returns the documents of a YAML file as JSON.
func documents(t *testing.T, path string) [][]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var found [][]byte
	for {
		var document json.RawMessage
		err := reader.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found = append(found, document)
	}
}

// decodeNumbers decodes without rounding.
func decodeNumbers(t *testing.T, document []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var content map[string]any
	require.NoError(t, decoder.Decode(&content))
	return content
}
