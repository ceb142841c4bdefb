package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/sources"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
)

func loadFor(ctx context.Context, files loader.Files, path string, stdin io.Reader) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	pkg, get, err := readPackage(path, stdin)
	if err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	values, err := sources.Read(ctx, get, pkg.PackageSpec(), pkg.GetNamespace())
	if err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	opts := sources.Options(pkg, values)
	loaded, err := loader.Load(ctx, files, opts)
	return loaded, opts.Package, err
}

// readPackage also returns the ConfigMaps in the same file.
func readPackage(path string, stdin io.Reader) (corev1alpha1.GenericPackage, sources.Get, error) {
	name, data, err := readInput(path, stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("read --package: %w", err)
	}
	if len(data) > limits.DocumentBytes {
		return nil, nil, fmt.Errorf("%s has more than %d bytes, which is the limit", name, limits.DocumentBytes)
	}
	var objects []*unstructured.Unstructured
	problems := document.Each(name, data, func(d *document.Document) {
		if body, ok := d.Value.(map[string]any); ok {
			objects = append(objects, &unstructured.Unstructured{Object: body})
		}
	})
	if err := problems.Err(); err != nil {
		// Not wrapped: the problems are not those of the package.
		return nil, nil, errors.New("--package cannot be read: " + err.Error())
	}
	pkg, err := packageIn(name, objects)
	return pkg, besideIt(objects, pkg), err
}

func packageIn(name string, objects []*unstructured.Unstructured) (found corev1alpha1.GenericPackage, err error) {
	for _, u := range objects {
		var pkg corev1alpha1.GenericPackage
		switch u.GroupVersionKind() {
		case corev1alpha1.GroupVersion.WithKind("Package"):
			pkg = corev1alpha1.ScopeNamespaced.NewPackage()
		case corev1alpha1.GroupVersion.WithKind("ClusterPackage"):
			pkg = corev1alpha1.ScopeCluster.NewPackage()
		default:
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s has several packages: name a file with one", name)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, pkg, true); err != nil {
			return nil, fmt.Errorf("the %s in %s: %w", u.GetKind(), name, err)
		}
		if u.GetKind() == "Package" && pkg.GetNamespace() == "" {
			pkg.SetNamespace("default")
		}
		found = pkg
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no Package and no ClusterPackage of %s", name, corev1alpha1.GroupVersion)
	}
	return found, nil
}

var errSecretSource = errors.New("values from Secrets are not rendered without a cluster: leave the Secret out of spec.configFrom, or see kubectl package plan")

// besideIt reads ConfigMaps in the same file.
func besideIt(objects []*unstructured.Unstructured, pkg corev1alpha1.GenericPackage) sources.Get {
	return func(_ context.Context, ref sources.Ref) (*sources.Object, error) {
		if ref.Kind == sources.KindSecret {
			return nil, errSecretSource
		}
		for _, u := range objects {
			// Sources of a ClusterPackage are in the manager's namespace, which is unknown here.
			here := ref.Namespace == "" || u.GetNamespace() == ref.Namespace || u.GetNamespace() == "" && pkg.GetNamespace() == ref.Namespace
			if u.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: ref.Kind}) || u.GetName() != ref.Name || !here {
				continue
			}
			raw, err := json.Marshal(u.Object["data"])
			texts := map[string]string{}
			if err != nil || json.Unmarshal(raw, &texts) != nil {
				return nil, fmt.Errorf("%s: data is no mapping of texts", ref)
			}
			object := &sources.Object{Data: map[string][]byte{}}
			for key, text := range texts {
				object.Data[key] = []byte(text)
			}
			return object, nil
		}
		return nil, nil
	}
}
