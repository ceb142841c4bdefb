package desired

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
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
