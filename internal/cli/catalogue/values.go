package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/config"
	"lockstep.run/lockstep/internal/loader/manifest"
)

type valuesCommand struct {
	command.Command
	source    content.SourceFlags
	cluster   bool
	component string
}

func newValues(on command.Command) *cobra.Command {
	c := &valuesCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "values NAME[/VERSION]|SOURCE|IMAGE",
		Short: "Print an example of a package's values, with what is known of each",
		Long: `Print an example of the values of a package as YAML, made from its schema: with types, defaults,
descriptions and allowed values as comments. What is required or has a default has a value, all
else is commented out. NAME is a package that a repository offers, in the version that would be
installed where none is named; SOURCE a folder, IMAGE an image.`,
		Example: `  kubectl package values shop.example.com > shop.yaml
  kubectl package install shop.example.com --values shop.yaml`,
		Args: command.Takes("NAME[/VERSION]|SOURCE|IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.Connects(cmd)
	cmd.ValidArgsFunction = c.CompleteSource(1)
	c.source.Add(cmd)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "from the cluster's repositories alone, as for a ClusterPackage")
	cmd.Flags().StringVar(&c.component, "component", "", "the component of a package that has several")
	return cmd
}

func (c *valuesCommand) run(cmd *cobra.Command, arg string) error {
	name, version, offered := c.offered(arg)
	var schema *apiextensionsv1.JSONSchemaProps
	var err error
	if offered {
		schema, err = c.ofOffered(cmd.Context(), name, version)
	} else {
		schema, err = c.ofSource(cmd.Context(), arg)
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c.Streams.Out, describe.Example(schema)); err != nil {
		return err
	}
	c.doubts(cmd.Context(), schema)
	return nil
}

// offered reports whether an argument names a package of a repository: a version after the only slash, or no sign of an
// image or a folder.
func (c *valuesCommand) offered(arg string) (name, version string, is bool) {
	if c.source.Pull {
		return "", "", false
	}
	if _, err := os.Stat(arg); err == nil || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") || strings.HasSuffix(arg, "/") {
		return "", "", false
	}
	name, version, err := nameAndVersion(arg)
	if err != nil || strings.ContainsAny(arg, ":@") {
		return "", "", false
	}
	if version != "" && !startsWithDigit(version) {
		return "", "", false // an image of a registry
	}
	return name, version, true
}

func startsWithDigit(text string) bool { return text[0] >= '0' && text[0] <= '9' }

func (c *valuesCommand) ofOffered(ctx context.Context, name, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, err
	}
	v, err := offeredVersion(ctx, cl, map[bool]string{false: cl.Namespace}[c.cluster], name, version)
	if err != nil {
		return nil, err
	}
	switch {
	case v.ConfigUnchecked != "":
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: the values of "+name+" "+v.Version+" are not checked: "+v.ConfigUnchecked))
	case v.ConfigSchema == nil:
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: "+name+" "+v.Version+" states no schema of its values"))
	}
	schema, err := desired.SchemaOf(v.ConfigSchema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s %s cannot be read: %w", name, v.Version, err)
	}
	return schema, nil
}

// offeredVersion reads one version of what is offered; the one that would be installed where version is empty.
func offeredVersion(ctx context.Context, cl *cluster.Cluster, namespace, name, version string) (*corev1alpha1.AvailableVersion, error) {
	choose := desired.ChooserFor(cl, namespace)
	if version == "" {
		found, newest, err := choose.Newest(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case len(found.Offered) == 0:
			return nil, choose.Unknown(ctx, name)
		}
		return &newest.Version, nil
	}
	found, err := choose.Choose(ctx, name, versions.Request{})
	if err != nil {
		return nil, err
	}
	if len(found.Offered) == 0 {
		return nil, choose.Unknown(ctx, name)
	}
	one, err := only(reportOf(found), version)
	if err != nil {
		return nil, err
	}
	return &one[0].AvailableVersion, nil
}

func (c *valuesCommand) ofSource(ctx context.Context, source string) (*apiextensionsv1.JSONSchemaProps, error) {
	files, err := c.source.Read(ctx, source)
	if err != nil {
		return nil, err
	}
	for _, part := range loader.Parts(files) {
		if part.Component != c.component {
			continue
		}
		read, problems := manifest.Read(part.Files, c.component)
		if read == nil {
			return nil, problems.Err()
		}
		return read.Manifest.Spec.Config.OpenAPIV3Schema, nil
	}
	if c.component != "" {
		return nil, fmt.Errorf("%s has no component %s; it has: %s", source, c.component, strings.Join(content.ComponentsOf(files), ", "))
	}
	return nil, errors.New(source + " has no manifest.yaml")
}

// doubts names what of the example does not fit the schema, such as values that rules demand.
func (c *valuesCommand) doubts(ctx context.Context, schema *apiextensionsv1.JSONSchemaProps) {
	path := field.NewPath("values")
	compiled, errs := config.Compile(ctx, path, schema)
	if len(errs) > 0 {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("warning: the schema cannot be used: "+errs[0].Error()))
		return
	}
	raw, err := content.ParseConfig("the example", []byte(describe.Example(schema)))
	if err != nil || compiled == nil {
		return
	}
	_, _, broken, errs := compiled.Admit(ctx, path, raw)
	for _, problem := range append(errs, broken...) {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: set "+strings.TrimPrefix(problem.Field, "values.")+": "+strings.TrimPrefix(problem.Error(), problem.Field+": ")))
	}
}
