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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/loader/config"
)

// SchemaOf reads a schema; nil if there is none.
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
	Cluster *cluster.Cluster
	Target  progress.Target
	// What names the version in messages. See is the command that shows its values.
	What, See string
	Schema    *apiextensionsv1.JSONSchemaProps
	// Lenient skips problems that are only warnings of the manager if a package states no version.
	Lenient bool
}

// Run checks the known part of the configuration. If it has other sources, which are not read, a
// missing value is not a problem.
func (v *ValuesCheck) Run(ctx context.Context, old corev1alpha1.GenericPackage, want *Package, values *Values) error {
	if v.Schema == nil {
		return nil
	}

	// Without values or configuration, the defaults of the schema still have to fit.
	raw, whole := []byte("{}"), true
	switch {
	case values != nil:
		raw = values.raw
	case want.Config != nil:
		raw = want.Config
	}

	if old != nil {
		// A package that keeps its values is checked with them.
		var kept []byte
		if kept, whole = v.kept(ctx, old, values); values == nil && want.Config == nil && kept != nil {
			raw = kept
		} else if values == nil && want.Config == nil && !whole {
			return nil
		}
	}

	return v.check(ctx, raw, whole, values != nil && values.Sensitive)
}

// kept returns the values of a package if they are its whole configuration. whole is false if there
// is more, or if they cannot be read.
func (v *ValuesCheck) kept(ctx context.Context, old corev1alpha1.GenericPackage, values *Values) (raw []byte, whole bool) {
	spec := old.PackageSpec()
	if spec.Config != nil {
		return spec.Config.Raw, len(spec.ConfigFrom) == 0 && values == nil
	}

	own := (&Values{}).Source(v.Target)
	switch {
	case len(spec.ConfigFrom) == 0:
		return nil, true
	case len(spec.ConfigFrom) > 1 || sourceName(spec.ConfigFrom[0]) != sourceName(*own):
		return nil, false
	case values != nil:
		return nil, true
	// The values in a Secret are not read, because this command must not need that right.
	case spec.ConfigFrom[0].ConfigMapKeyRef == nil:
		return nil, false
	}
	var live corev1.ConfigMap
	key := client.ObjectKey{Namespace: ValuesNamespace(v.Target), Name: own.ConfigMapKeyRef.Name}
	if err := v.Cluster.Get(ctx, key, &live); err != nil {
		return nil, false
	}

	raw, err := content.ParseConfig(live.Name, []byte(live.Data[ValuesKey]))
	return raw, err == nil
}

// check compares values with the schema, and names each problem in a line. Values that are not the
// whole configuration can lack required ones.
func (v *ValuesCheck) check(ctx context.Context, raw []byte, whole, sensitive bool) error {
	path := field.NewPath("values")
	compiled, errs := config.Compile(ctx, path, v.Schema)
	if len(errs) > 0 {
		return nil // the manager reports the problem of the schema
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

// CheckValues compares the future values of a package with the schema of its chosen version.
func CheckValues(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, found *Chosen, old corev1alpha1.GenericPackage, want *Package, values *Values,
) error {
	version := found.Version().Version
	schema, err := SchemaOf(version.ConfigSchema)
	if err != nil {
		return nil // the manager reports the problem
	}
	check := ValuesCheck{Cluster: cl, Target: t, What: found.Name + " " + version.Version, See: "kubectl package available " + found.Name + "/" + version.Version + " --values" + scopeFlag(t.Namespace), Schema: schema}
	return check.Run(ctx, old, want, values)
}
