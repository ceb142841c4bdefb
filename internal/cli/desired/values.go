package desired

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/loader/config"
)

const (
	// ValuesSuffix is appended to the name of a package to name its values.
	ValuesSuffix = "-values"
	// ValuesKey is the key of the values in their object.
	ValuesKey = "values.yaml"
	// managedBy marks objects of values, in addition to their owner.
	managedBy = "app.kubernetes.io/managed-by"
)

// Values are the values of a package in a ConfigMap or Secret of their own.
type Values struct {
	// Text is YAML as given, and raw is the same as JSON.
	Text, raw []byte
	Sensitive bool
}

// Source is the entry of configFrom.
func (v *Values) Source(t progress.Target) *corev1alpha1.ValueSource {
	if v.Sensitive {
		return &corev1alpha1.ValueSource{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: t.Name + ValuesSuffix, Key: ValuesKey}}
	}
	return &corev1alpha1.ValueSource{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: t.Name + ValuesSuffix, Key: ValuesKey}}
}

// WithValues replaces the entry of the same object, or appends values as the last one.
func WithValues(from []corev1alpha1.ValueSource, values *corev1alpha1.ValueSource) []corev1alpha1.ValueSource {
	if values == nil {
		return from
	}

	out := slices.Clone(from)
	for i := range out {
		// The order of the list decides which value wins, so the entry keeps its place.
		if sourceName(out[i]) == sourceName(*values) {
			if SourceKind(out[i]) != SourceKind(*values) {
				out[i] = *values
			}
			return out
		}
	}
	return append(out, *values)
}

// sourceName identifies a source by its object and key. A ConfigMap and a Secret of one name are
// the same source, because --sensitive changes the kind.
func sourceName(v corev1alpha1.ValueSource) string {
	switch {
	case v.SecretKeyRef != nil:
		return v.SecretKeyRef.Name + "/" + v.SecretKeyRef.Key
	case v.ConfigMapKeyRef != nil:
		return v.ConfigMapKeyRef.Name + "/" + v.ConfigMapKeyRef.Key
	}
	return ""
}

// SourceKind is the kind of the object that a source reads.
func SourceKind(v corev1alpha1.ValueSource) string {
	if v.SecretKeyRef != nil {
		return "Secret"
	}
	return "ConfigMap"
}

// ValuesNamespace returns the namespace that the manager reads the values of a package from.
func ValuesNamespace(t progress.Target) string {
	if t.Scope == corev1alpha1.ScopeCluster {
		return corev1alpha1.DefaultNamespace
	}
	return t.Namespace
}

// Object is the ConfigMap or Secret.
func (v *Values) Object(t progress.Target) client.Object {
	about := metav1.ObjectMeta{
		Namespace: ValuesNamespace(t), Name: t.Name + ValuesSuffix,
		Labels: map[string]string{managedBy: command.FieldManager},
	}

	if v.Sensitive {
		return &corev1.Secret{ObjectMeta: about, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{ValuesKey: v.Text}}
	}
	return &corev1.ConfigMap{ObjectMeta: about, Data: map[string]string{ValuesKey: string(v.Text)}}
}

// valuesWriter writes values before the package that refers to them.
type valuesWriter struct {
	cluster *cluster.Cluster
	target  progress.Target
	values  *Values
	object  client.Object
	// created and changed record the result of write.
	created, changed bool
}

// write creates or changes the object. It refuses an object that this program did not create.
func (w *valuesWriter) write(ctx context.Context) error {
	w.object = w.values.Object(w.target)
	name := fmt.Sprintf("%s %s/%s", SourceKind(*w.values.Source(w.target)), w.object.GetNamespace(), w.object.GetName())
	err := w.cluster.Create(ctx, w.object, client.FieldOwner(command.FieldManager))
	if err == nil {
		w.created = true
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return w.cluster.Explain("cannot write the values to "+name, err)
	}

	live := w.values.Object(w.target)
	if err := w.cluster.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return w.cluster.Explain("cannot read the values in "+name, err)
	}

	// An object of another origin could hold anything, and would be deleted with the package.
	if live.GetLabels()[managedBy] != command.FieldManager {
		return fmt.Errorf("%s exists and does not hold values of kubectl package: delete it, or give the package another name", name)
	}

	before := live.DeepCopyObject().(client.Object)
	w.changed = w.values.Replace(live)
	if w.object = live; !w.changed {
		return nil
	}

	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return w.cluster.Explain("cannot write the values to "+name, w.cluster.Patch(ctx, live, patch, client.FieldOwner(command.FieldManager)))
}

// Replace puts the values into an object, and reports whether they differ.
func (v *Values) Replace(live client.Object) bool {
	switch o := live.(type) {
	case *corev1.Secret:
		same := string(o.Data[ValuesKey]) == string(v.Text)
		o.Data = map[string][]byte{ValuesKey: v.Text}
		return !same
	case *corev1.ConfigMap:
		same := o.Data[ValuesKey] == string(v.Text)
		o.Data = map[string]string{ValuesKey: string(v.Text)}
		return !same
	}
	return false
}

// own makes the package the owner of the values, so that both are deleted together, and removes the
// values of the other kind.
func (w *valuesWriter) own(ctx context.Context, pkg corev1alpha1.GenericPackage) error {
	if slices.ContainsFunc(w.object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == pkg.GetUID() }) {
		return w.removeOther(ctx)
	}

	before := w.object.DeepCopyObject().(client.Object)
	w.object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: w.target.Kind(), Name: pkg.GetName(), UID: pkg.GetUID(),
	}})
	if err := w.cluster.Patch(ctx, w.object, client.MergeFrom(before), client.FieldOwner(command.FieldManager)); err != nil {
		return w.cluster.Explain("cannot make "+w.target.String()+" the owner of its values", err)
	}

	return w.removeOther(ctx)
}

// removeOther deletes the values of the other kind, which remain after --sensitive was added or
// removed.
func (w *valuesWriter) removeOther(ctx context.Context) error {
	other := (&Values{Sensitive: !w.values.Sensitive}).Object(w.target)
	if err := w.cluster.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil {
		return nil // a user who may not read it has not created it
	}
	// An object without our label belongs to another client.
	if other.GetLabels()[managedBy] != command.FieldManager {
		return nil
	}
	err := w.cluster.Delete(ctx, other)
	return w.cluster.Explain("cannot delete the earlier values", client.IgnoreNotFound(err))
}

// SchemaOf reads a schema. It returns nil for an empty extension.
func SchemaOf(raw *runtime.RawExtension) (*apiextensionsv1.JSONSchemaProps, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(raw.Raw, props); err != nil {
		return nil, err
	}
	return props, nil
}

// ValuesCheck compares values with the schema of their version.
type ValuesCheck struct {
	Target progress.Target
	// What names the version in messages. See is the command that shows its values.
	What, See string
	Schema    *apiextensionsv1.JSONSchemaProps
	// Lenient skips problems that are only warnings of the manager if a package states no version.
	Lenient bool
}

// Run checks the given values or configuration. The manager checks the ones that stay. If the
// package has other sources, which are not read, a missing value is not a problem.
func (v *ValuesCheck) Run(ctx context.Context, old corev1alpha1.GenericPackage, want *Package, values *Values) error {
	if v.Schema == nil {
		return nil
	}

	whole := true
	if old != nil {
		spec := old.PackageSpec()
		own := (&Values{}).Source(v.Target)
		whole = len(spec.ConfigFrom) == 0 || values != nil && len(WithValues(spec.ConfigFrom, own)) == 1
		whole = whole && (values == nil || spec.Config == nil)
	}

	switch {
	case values != nil:
		return v.check(ctx, values.raw, whole, values.Sensitive)
	case want.Config != nil:
		return v.check(ctx, want.Config, whole, false)
	case old != nil:
		return nil
	}
	// Without values or configuration, the defaults of the schema still have to fit.
	return v.check(ctx, []byte("{}"), whole, false)
}

// check compares values with the schema, and names each problem in a line. Values that are not the
// whole configuration can lack required ones.
func (v *ValuesCheck) check(ctx context.Context, raw []byte, whole, sensitive bool) error {
	path := field.NewPath("values")
	compiled, errs := config.Compile(ctx, path, v.Schema)
	if len(errs) > 0 {
		return nil // the load of the package reports a broken schema
	}

	_, unknown, broken, errs := compiled.Admit(ctx, path, raw)
	if v.Lenient {
		unknown, broken = nil, nil
	}

	var lines []string
	for _, u := range unknown {
		lines = append(lines, strings.TrimPrefix(u.Field, "values.")+": unknown key. "+u.Remedy)
	}

	for _, err := range slices.Concat(errs, broken) {
		if !whole && (err.Type == field.ErrorTypeRequired || slices.Contains(broken, err)) {
			continue
		}
		path := strings.TrimPrefix(strings.TrimPrefix(err.Field, "values"), ".") // empty for a rule over all of them
		lines = append(lines, cmp.Or(path, "all together")+": "+problemText(err, sensitive))
	}

	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("the values do not fit %s:\n  %s\nTo see its values: %s", v.What, strings.Join(lines, "\n  "), v.See)
}

// problemText returns a problem without the value, which might be a secret. A package's own rule
// might quote sensitive values.
func problemText(err *field.Error, sensitive bool) string {
	detail := err.Detail
	if err.Type == field.ErrorTypeTypeInvalid { // a message about a format ends with the value
		detail, _, _ = strings.Cut(detail, `: "`)
	}
	if sensitive || detail == "" {
		return err.Type.String()
	}
	return err.Type.String() + ": " + detail
}

// CheckValues compares the given values of a package with the schema of its chosen version.
func CheckValues(
	ctx context.Context, t progress.Target, found *Chosen, old corev1alpha1.GenericPackage, want *Package, values *Values,
) error {
	version := found.Version().Version
	schema, err := SchemaOf(version.ConfigSchema)
	if err != nil {
		return nil // the load of the package reports a broken schema
	}
	check := ValuesCheck{Target: t, What: found.Name + " " + version.Version, See: "kubectl package available " + found.Name + "/" + version.Version + " --values" + progress.ScopeFlag(t.Namespace), Schema: schema}
	return check.Run(ctx, old, want, values)
}
