package author

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
)

// previewFlags describe an installation without a cluster.
type previewFlags struct {
	cluster   bool
	namespace string
	component string
	config    string
	testCase  string

	// locked renders with the images of the lock if no test case is named.
	locked bool
}

// add adds the flags to a command.
func (p *previewFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", "", "show it as a Package in this `namespace`")
	cmd.Flags().BoolVar(&p.cluster, "cluster", false, "show it as a ClusterPackage")
	cmd.Flags().StringVar(&p.component, "component", "", "show this component of a package with several")
	cmd.Flags().StringVar(&p.config, "config", "", "read the package's configuration from this YAML or JSON `file`, - for standard input")
	cmd.Flags().StringVar(&p.testCase, "config-testcase", "", "use the configuration of this `test case` of the manifest")
	cmd.Flags().StringVar(&p.config, "config-path", "", "")
	_ = cmd.Flags().MarkHidden("config-path") // Package Operator's name of --config
	cmd.MarkFlagsMutuallyExclusive("config", "config-path", "config-testcase")
}

// check returns an error of usage.
func (p *previewFlags) check() error {
	if p.cluster && p.namespace != "" {
		return errors.New("--cluster and --namespace contradict each other")
	}
	return nil
}

// load renders a package, and returns it with the object that it is rendered for.
func (p *previewFlags) load(
	ctx context.Context, streams genericiooptions.IOStreams, source string, files loader.Files,
) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	// Without a scope from the user, the package's own scope decides.
	if p.cluster || p.namespace != "" {
		if err := content.CheckScope(source, files, p.component, corev1alpha1.ScopeOf(p.namespace)); err != nil {
			return nil, manifestsv1alpha1.TemplateContextPackage{}, err
		}
	}

	opts := loader.PreviewOptions{
		Component: p.component, TestCase: p.testCase, Cluster: p.cluster, Namespace: p.namespace,
		LockedImages: p.locked && p.testCase == "",
	}

	var err error
	if opts.Config, err = content.ReadConfig(p.config, streams.In); err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	pkg, object, err := loader.Preview(ctx, files, opts)
	if err != nil {
		return nil, object, content.Reported(streams, err, "%s in "+source)
	}

	content.PrintFindings(streams.ErrOut, terminal.StylesFor(streams.ErrOut), content.FindingsOf(nil, pkg.Warnings))
	return pkg, object, nil
}
