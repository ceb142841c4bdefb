package carvel

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/test/conformance"
	"lockstep.run/lockstep/test/require"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{Operations: map[string]conformance.Operation{
		"values-merge": conformance.Of(merged), "extension-order": conformance.Of(extended),
	}}.Run(t)
}

// imported returns the Package that a PackageInstall becomes, in a namespace that also has Secrets
// with files.
func imported(t *testing.T, install map[string]any, secrets map[string]map[string]any) *corev1alpha1.Package {
	t.Helper()
	documents := []map[string]any{install}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		data := map[string]any{}
		for file, content := range secrets[name] {
			data[file] = base64.StdEncoding.EncodeToString(marshalled(t, content))
		}
		documents = append(documents, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "team", "name": name}, "data": data,
		})
	}
	pkg := &corev1alpha1.Package{}
	for _, o := range Convert(documents, GlobalNamespace).Objects {
		if raw := marshalled(t, o); o["kind"] == "Package" {
			require.NoError(t, json.Unmarshal(raw, pkg))
		}
	}
	return pkg
}

func marshalled(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return data
}

func packageInstall(annotations map[string]string, values ...any) map[string]any {
	of := map[string]any{}
	for name, value := range annotations {
		of[name] = value
	}
	return map[string]any{
		"apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall",
		"metadata": map[string]any{"namespace": "team", "name": "shop", "annotations": of},
		"spec":     map[string]any{"packageRef": map[string]any{"refName": "shop.example.com"}, "values": values},
	}
}

// merged: whole Secrets become single keys, which are merged in their order.
func merged(t *testing.T, in struct{ Secrets []map[string]any }, want *conformance.Expectation) {
	values, secrets := []any{}, map[string]map[string]any{}
	for i, files := range in.Secrets {
		name := fmt.Sprintf("secret-%d", i)
		values = append(values, map[string]any{"secretRef": map[string]any{"name": name}})
		secrets[name] = files
	}
	pkg := imported(t, packageInstall(nil, values...), secrets)
	read, err := sources.Read(t.Context(), func(_ context.Context, ref sources.Ref) (*sources.Object, error) {
		o := &sources.Object{Data: map[string][]byte{}}
		for file, content := range secrets[ref.Name] {
			o.Data[file] = marshalled(t, content)
		}
		return o, nil
	}, &pkg.Spec, "team")
	require.NoError(t, err)
	want.Is("values", json.RawMessage(read.Config))
}

// extended: values of Helm become values of the package, in the order of the annotations. ytt is
// not run.
func extended(t *testing.T, in struct {
	Annotations map[string]string
	Steps       []string
}, want *conformance.Expectation,
) {
	secrets := map[string]map[string]any{}
	for name, secret := range in.Annotations {
		secrets[secret] = map[string]any{"values.yaml": map[string]any{}}
		if strings.HasPrefix(name, yttPaths) {
			want.Otherwise(conformance.NoOverlays)
		}
	}
	perStep, helm := make([][]string, len(in.Steps)), slices.Index(in.Steps, "helm")
	for _, source := range imported(t, packageInstall(in.Annotations), secrets).Spec.ConfigFrom {
		if helm >= 0 {
			perStep[helm] = append(perStep[helm], source.SecretKeyRef.Name)
		}
	}
	want.Is("perStep", perStep)
}
