package sources

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Object is a source that was read.
type Object struct {
	Type string
	// Data is the data of a Secret or a ConfigMap.
	Data        map[string][]byte
	PullSecrets []Ref
	// Refused is why a Secret is not read; its Data is empty then. It is empty for other objects.
	Refused string
}

// Get reads an object. It returns nil if the object does not exist.
type Get func(context.Context, Ref) (*Object, error)

// Getter reads from the API server without a cache.
func Getter(reader client.Reader) Get {
	return func(ctx context.Context, ref Ref) (*Object, error) {
		if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 {
			return nil, nil // no object can have this name
		}
		found := &unstructured.Unstructured{}
		found.SetAPIVersion("v1")
		found.SetKind(ref.Kind)
		err := reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", ref, err)
		}
		return objectOf(ref, found.Object), nil
	}
}

func objectOf(ref Ref, content map[string]any) *Object {
	o := &Object{Data: map[string][]byte{}}
	o.Type, _, _ = unstructured.NestedString(content, "type")
	plain, encoded := "data", "binaryData"
	if ref.Kind == KindSecret {
		if o.Refused = refused(o.Type); o.Refused != "" {
			return o
		}
		plain, encoded = "", "data"
	}

	texts, _, _ := unstructured.NestedStringMap(content, plain)
	for key, text := range texts {
		o.Data[key] = []byte(text)
	}

	texts, _, _ = unstructured.NestedStringMap(content, encoded)
	for key, text := range texts {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			o.Data[key] = data
		}
	}

	secrets, _, _ := unstructured.NestedSlice(content, "imagePullSecrets")
	for _, secret := range secrets {
		if name, ok := secret.(map[string]any)["name"].(string); ok && ref.Kind == KindServiceAccount {
			o.PullSecrets = append(o.PullSecrets, Ref{Kind: KindSecret, Namespace: ref.Namespace, Name: name})
		}
	}

	return o
}

// Values are the contents of sources for one rendering.
type Values struct {
	// Config is the configuration with spec.config merged over it, as JSON; nil if there is none.
	Config []byte
	// Patches are the texts of spec.patches. The text of a missing optional one is empty.
	Patches     []string
	Sensitive   []string
	FromSecrets []loader.SecretValue
}

// Read reads the inputs of a Package's rendering. Its error can be violation.Violations.
func Read(ctx context.Context, get Get, spec *corev1alpha1.PackageSpec, namespace string) (*Values, error) {
	r := &reader{get: get, namespace: namespace, known: map[Ref]*Object{}, secret: map[string]struct{}{}}
	values := &Values{}
	var err error
	if values.Config, values.FromSecrets, err = r.config(ctx, spec); err != nil {
		return nil, err
	}
	if values.Patches, err = r.patches(ctx, spec); err != nil {
		return nil, err
	}
	values.Sensitive = slices.Sorted(maps.Keys(r.secret))
	return values, r.problems.Err()
}

type reader struct {
	get       Get
	namespace string
	known     map[Ref]*Object
	secret    map[string]struct{}
	problems  violation.Violations
}

// text returns the content of a source. ok is false if it does not exist, which is a problem unless
// it is optional.
func (r *reader) text(ctx context.Context, field string, source *corev1alpha1.ValueSource) (text []byte, ok bool, err error) {
	ref := refOf(source, r.namespace)
	name, optional := key(source)
	object, known := r.known[ref]
	if !known {
		if object, err = r.get(ctx, ref); err != nil {
			return nil, false, err
		}
		r.known[ref] = object
	}

	missing := ""
	switch {
	case object == nil:
		missing = "it does not exist"
	case object.Refused != "":
		r.invalid(field, source, object.Refused)
		return nil, false, nil
	case object.Data[name] == nil:
		missing = fmt.Sprintf("it has no key %q", name)
	case !utf8.Valid(object.Data[name]):
		r.invalid(field, source, "it is not UTF-8 text")
		return nil, false, nil
	default:
		return object.Data[name], true, nil
	}

	if !optional {
		r.problems = append(r.problems, violation.Violation{
			Reason: violation.ReasonSourceMissing, Field: field, Object: ref.String(), Details: missing,
		})
	}

	return nil, false, nil
}

// invalid reports unusable content. details must not quote it.
func (r *reader) invalid(field string, source *corev1alpha1.ValueSource, details string) {
	name, _ := key(source)
	r.problems = append(r.problems, violation.Violation{
		Reason: violation.ReasonSourceInvalid, Field: field,
		Object: fmt.Sprintf("key %q of %s", name, refOf(source, r.namespace)), Details: details,
	})
}

// Options returns the options for loading a Package with the values of its sources. The caller adds
// the options that depend on the cluster.
func Options(pkg corev1alpha1.GenericPackage, values *Values) loader.Options {
	spec := pkg.PackageSpec()
	o := loader.Options{
		Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{
				Name: pkg.GetName(), Namespace: pkg.GetNamespace(), Labels: pkg.GetLabels(), Annotations: pkg.GetAnnotations(),
			},
			Image: spec.Image,
		},
		Component: spec.Component, Config: values.Config, Sensitive: values.Sensitive, FromSecrets: values.FromSecrets,
		DefaultNamespace: spec.DefaultNamespace, CollisionProtection: spec.CollisionProtection, IgnoredFields: spec.IgnoredFields,
	}

	o.Namespace, o.Package.Metadata.Namespace = pkg.GetNamespace(), spec.TargetRef.NamespaceOf(pkg.GetNamespace())
	if pkg.GetNamespace() == "" && spec.TargetRef != nil {
		o.DefaultNamespace = cmp.Or(spec.TargetRef.Namespace, spec.DefaultNamespace)
	}
	if spec.CommonMetadata != nil {
		o.CommonMetadata = loader.CommonMetadata{Labels: spec.CommonMetadata.Labels, Annotations: spec.CommonMetadata.Annotations}
	}

	for i, text := range values.Patches {
		if text == "" {
			continue // an optional source that does not exist
		}
		patch := loader.Patch{Patch: text, Source: fmt.Sprintf("spec.patches[%d]", i)}
		if target := spec.Patches[i].Target; target != nil {
			patch.Target = loader.PatchTarget{Group: target.Group, Kind: target.Kind, Name: target.Name, LabelSelector: target.LabelSelector}
		}
		o.Patches = append(o.Patches, patch)
	}

	return o
}
