package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// previewFlags say for which installation a package is shown without a cluster.
type previewFlags struct {
	cluster   bool
	namespace string
	component string
	config    string
	testCase  string
	pkg       string
	// locked asks for the images of the lock where no test case is named.
	locked bool
}

func (p *previewFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", "", "show it as a Package in this `namespace`")
	p.addBesideConnection(cmd)
}

// addBesideConnection adds the flags to a command that has the namespace among
// those of its connection.
func (p *previewFlags) addBesideConnection(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.cluster, "cluster", false, "show it as a ClusterPackage")
	cmd.Flags().StringVar(&p.component, "component", "", "the component to show of a package that has several")
	cmd.Flags().StringVar(&p.config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().StringVar(&p.testCase, "config-testcase", "", "the `test case` of the manifest whose configuration is used")
	cmd.Flags().StringVar(&p.pkg, "package", "", "YAML or JSON `file` with the Package or ClusterPackage to render for, and ConfigMaps that it names")
	cmd.Flags().StringVar(&p.config, "config-path", "", "")
	_ = cmd.Flags().MarkHidden("config-path") // Package Operator's name of --config
	cmd.MarkFlagsMutuallyExclusive("config", "config-path", "config-testcase", "package")
	for _, flag := range []string{"cluster", "namespace", "component"} {
		if cmd.Flags().Lookup(flag) != nil {
			cmd.MarkFlagsMutuallyExclusive(flag, "package")
		}
	}
	_ = cmd.RegisterFlagCompletionFunc("component", completeFrom(componentsOf))
	_ = cmd.RegisterFlagCompletionFunc("config-testcase", completeFrom(testCasesOf))
}

func (p *previewFlags) check() error {
	if p.cluster && p.namespace != "" {
		return errors.New("--cluster and --namespace contradict each other")
	}
	return nil
}

// onlyForSource refuses flags that say how to render where nothing is rendered:
// arg is the name of an installed package.
func (p *previewFlags) onlyForSource(cmd *cobra.Command, arg string) error {
	for _, flag := range []string{"component", "config", "config-path", "config-testcase", "package"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for a package in a folder or an image, and %s is an installed one", flag, arg)
		}
	}
	return nil
}

func (p *previewFlags) scope() corev1alpha1.Scope {
	if p.cluster {
		return corev1alpha1.ScopeCluster
	}
	return corev1alpha1.ScopeNamespaced
}

// load renders a package, and prints its warnings and problems.
func (p *previewFlags) load(
	ctx context.Context, streams genericiooptions.IOStreams, source string, files loader.Files,
) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	if p.pkg == "" && (p.cluster || p.namespace != "") {
		if err := checkScope(source, files, p.component, p.scope()); err != nil {
			return nil, manifestsv1alpha1.TemplateContextPackage{}, err
		}
	}
	opts := loader.PreviewOptions{
		Component: p.component, TestCase: p.testCase, Cluster: p.cluster, Namespace: p.namespace,
		LockedImages: p.locked && p.testCase == "",
	}
	if p.config != "" {
		config, err := readConfig(p.config, streams.In)
		if err != nil {
			return nil, manifestsv1alpha1.TemplateContextPackage{}, err
		}
		if opts.Config, err = json.Marshal(config); err != nil {
			return nil, manifestsv1alpha1.TemplateContextPackage{}, fmt.Errorf("the configuration is no JSON: %w", err)
		}
	}
	pkg, object, err := p.preview(ctx, streams, files, opts)
	styles := terminal.StylesFor(streams.ErrOut)
	var wrong violation.Violations
	if errors.As(err, &wrong) {
		printFindings(streams.ErrOut, styles, findingsOf(wrong, nil))
		return nil, object, fmt.Errorf("%s in %s", problems(len(wrong)), source)
	}
	if err != nil {
		return nil, object, err
	}
	printFindings(streams.ErrOut, styles, findingsOf(nil, pkg.Warnings))
	return pkg, object, nil
}

func (p *previewFlags) preview(
	ctx context.Context, streams genericiooptions.IOStreams, files loader.Files, opts loader.PreviewOptions,
) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	if p.pkg != "" {
		return loadFor(ctx, files, p.pkg, streams.In)
	}
	pkg, object, err := loader.Preview(ctx, files, opts)
	if onlyScope(err) && p.namespace == "" {
		// It can be a ClusterPackage alone.
		opts.Cluster = true
		return loader.Preview(ctx, files, opts)
	}
	return pkg, object, err
}

// onlyScope reports whether all that is wrong follows from the kind of the Package
// object.
func onlyScope(err error) bool {
	var wrong violation.Violations
	if !errors.As(err, &wrong) {
		return false
	}
	unsupported := false
	for _, v := range wrong {
		switch v.Reason {
		case violation.ReasonUnsupportedScope:
			unsupported = true
		case violation.ReasonObjectScope:
		default:
			return false
		}
	}
	return unsupported
}
