package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/config"
)

// choiceFlags choose a version of what repositories offer.
type choiceFlags struct {
	version     string
	prereleases prereleaseFlag
	changed     func(string) bool
}

func (f *choiceFlags) add(cmd *cobra.Command) {
	f.changed = cmd.Flags().Changed
	cmd.Flags().StringVar(&f.version, "version", "", "`constraint` on the version, such as 1.2.3 or '>=1.2, <2'; the highest that fits is installed and followed")
	f.prereleases.add(cmd, "let versions with a prerelease take part")
}

func (f *choiceFlags) given() bool {
	return f.changed("version") || f.version != "" || f.prereleases.given()
}

func (f *choiceFlags) check() error {
	if _, err := versions.ParseConstraint(f.version); err != nil {
		return fmt.Errorf("--version: %w", err)
	}
	return nil
}

func (f *choiceFlags) reference(name string) *corev1alpha1.PackageReference {
	return &corev1alpha1.PackageReference{
		Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: f.version, Prereleases: f.prereleases.value()},
	}
}

// over is a reference with what the flags change.
func (f *choiceFlags) over(old *corev1alpha1.PackageReference) *corev1alpha1.PackageReference {
	ref := old.DeepCopy()
	if f.changed("version") {
		ref.Version = f.version
	}
	if f.prereleases.given() {
		ref.Prereleases = f.prereleases.value()
	}
	return ref
}

// valuesFlags are the values of a package.
type valuesFlags struct {
	file      string
	sensitive bool
	// dependencies are values of dependencies in the same file, after read.
	dependencies []dependencyValues
}

func (f *valuesFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "values", "f", "", "YAML or JSON `file` with the package's values, and in further documents that begin with # dep=NAME those of dependencies; - for standard input")
	cmd.Flags().BoolVar(&f.sensitive, "sensitive", false, "keep the values in a Secret; they may be rendered into Secrets only")
}

func (f *valuesFlags) check() error {
	if f.sensitive && f.file == "" {
		return errors.New("--sensitive is about --values, which are not given")
	}
	return nil
}

// read returns nil where there are none.
func (f *valuesFlags) read(stdin io.Reader) (*packageValues, error) {
	if f.file == "" {
		return nil, nil
	}
	name, text, err := readInput(f.file, stdin)
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	return f.split(name, text)
}

// prepare checks versions and values before anything is written. It returns the image, "" for one without an image.
func (c *installCommand) prepare(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want *wantedPackage, values *packageValues,
) (image string, err error) {
	if want.ref == nil {
		return want.image, nil
	}
	if old != nil && !c.choice.given() && old.PackageSpec().PackageRef != nil && old.PackageSpec().PackageRef.Name == want.ref.Name {
		want.ref = old.PackageSpec().PackageRef // as with an image, what no flag names stays
	}
	target := want.target
	if old != nil {
		target = old.PackageSpec().TargetRef
	}
	found, err := chooserFor(cl, t.Namespace).at(target).mustChoose(ctx, want.ref.Name, requestFor(old, want))
	if err != nil {
		return "", err
	}
	if err := checkDependencies(&found.version().Version, want.dependencies); err != nil {
		return "", fmt.Errorf("%s: %w", want.ref.Name, err)
	}
	return found.version().Version.Image, checkValues(ctx, cl, t, found, old, want, values)
}

// requestFor is what the manager would choose for a package.
func requestFor(old corev1alpha1.GenericPackage, want *wantedPackage) versions.Request {
	pkg := corev1alpha1.GenericPackage(&corev1alpha1.Package{})
	if old != nil {
		pkg = old.DeepCopyObject().(corev1alpha1.GenericPackage)
	}
	spec := pkg.PackageSpec()
	spec.PackageRef = want.ref
	return offers.RequestOf(pkg, versions.Platform{})
}

// valuesCheck compares values with the schema of the version that they are for.
type valuesCheck struct {
	cluster *cluster.Cluster
	target  progress.Target
	// what names the version in messages; see is the command that says what it takes.
	what, see string
	schema    *apiextensionsv1.JSONSchemaProps
}

// run checks what is known of the configuration. Other sources of it are not read: with them, nothing can be missing.
func (v *valuesCheck) run(ctx context.Context, old corev1alpha1.GenericPackage, want *wantedPackage, values *packageValues) error {
	if v.schema == nil {
		return nil
	}
	raw, whole := []byte("{}"), true
	switch {
	case values != nil:
		raw = values.raw
	case want.config != nil:
		raw = want.config
	}
	if old != nil {
		var kept []byte
		if kept, whole = v.kept(ctx, old, values); values == nil && want.config == nil && kept != nil {
			raw = kept
		} else if values == nil && want.config == nil && !whole {
			return nil
		}
	}
	return v.check(ctx, raw, whole, values != nil && values.sensitive)
}

// kept returns the values of a package where they are all of its configuration; whole is false where there is more, or
// where they cannot be read.
func (v *valuesCheck) kept(ctx context.Context, old corev1alpha1.GenericPackage, values *packageValues) (raw []byte, whole bool) {
	spec := old.PackageSpec()
	if spec.Config != nil {
		return spec.Config.Raw, len(spec.ConfigFrom) == 0 && values == nil
	}
	own := (&packageValues{}).source(v.target)
	switch {
	case len(spec.ConfigFrom) == 0:
		return nil, true
	case len(spec.ConfigFrom) > 1 || sourceName(spec.ConfigFrom[0]) != sourceName(*own):
		return nil, false
	case values != nil:
		return nil, true
	case spec.ConfigFrom[0].ConfigMapKeyRef == nil:
		return nil, false
	}
	var live corev1.ConfigMap
	key := client.ObjectKey{Namespace: valuesNamespace(v.target), Name: own.ConfigMapKeyRef.Name}
	if err := v.cluster.Get(ctx, key, &live); err != nil {
		return nil, false
	}
	raw, err := parseConfig(live.Name, []byte(live.Data[valuesKey]))
	return raw, err == nil
}

func (v *valuesCheck) check(ctx context.Context, raw []byte, whole, sensitive bool) error {
	path := field.NewPath("values")
	compiled, errs := config.Compile(ctx, path, v.schema)
	if len(errs) > 0 {
		return nil // the manager says what is wrong with the schema
	}
	_, unknown, broken, errs := compiled.Admit(ctx, path, raw)
	var lines []string
	for _, u := range unknown {
		lines = append(lines, strings.TrimPrefix(u.Field, "values.")+": unknown key. "+u.Remedy)
	}
	for _, err := range slices.Concat(errs, broken) {
		if !whole && (err.Type == field.ErrorTypeRequired || slices.Contains(broken, err)) {
			continue
		}
		path := strings.TrimPrefix(strings.TrimPrefix(err.Field, "values"), ".") // empty for a rule over all of them
		lines = append(lines, cmp.Or(path, "all together")+": "+problemText(err, sensitive || mayHoldSecret(v.schema, path)))
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("the values do not fit %s:\n  %s\nSee what it takes: %s", v.what, strings.Join(lines, "\n  "), v.see)
}

// problemText is an error without the value where that may be a secret.
func problemText(err *field.Error, secret bool) string {
	if secret && err.Type != field.ErrorTypeRequired {
		return err.Type.String()
	}
	return strings.TrimPrefix(err.Error(), err.Field+": ")
}

// mayHoldSecret reports whether a value at a path of a schema is a password, or holds one.
func mayHoldSecret(props *apiextensionsv1.JSONSchemaProps, path string) bool {
	for _, step := range pathStep.FindAllString(path, -1) {
		if props == nil || props.Format == "password" {
			break
		}
		props = below(props, step)
	}
	return hasPassword(props, 0)
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

// below is the schema of a key or of an element.
func below(props *apiextensionsv1.JSONSchemaProps, step string) *apiextensionsv1.JSONSchemaProps {
	if of, ok := props.Properties[step]; ok {
		return &of
	}
	if props.Items != nil {
		return props.Items.Schema
	}
	if props.AdditionalProperties != nil {
		return props.AdditionalProperties.Schema
	}
	return nil
}

// hasPassword reports whether a schema has a field for a secret; true where it is not known.
func hasPassword(props *apiextensionsv1.JSONSchemaProps, depth int) bool {
	if props == nil || depth > limits.ExampleDepth || props.Format == "password" {
		return true
	}
	for _, of := range props.Properties {
		if hasPassword(&of, depth+1) {
			return true
		}
	}
	if props.Items != nil && hasPassword(props.Items.Schema, depth+1) {
		return true
	}
	return props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil && hasPassword(props.AdditionalProperties.Schema, depth+1)
}
