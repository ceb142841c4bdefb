package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// previewFlags describe an installation without a cluster.
type previewFlags struct {
	cluster   bool
	namespace string
	component string
	config    string
	testCase  string
	pkg       string
	// locked renders with the images of the lock where no test case is named.
	locked bool
	// override and rewrite, which may be nil, change references of images of the lock, and of those that objects name.
	override, rewrite func(string) string
}

func (p *previewFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", "", "show it as a Package in this `namespace`")
	cmd.Flags().BoolVar(&p.cluster, "cluster", false, "show it as a ClusterPackage")
	cmd.Flags().StringVar(&p.component, "component", "", "the component to show of a package that has several")
	cmd.Flags().StringVar(&p.config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().StringVar(&p.testCase, "config-testcase", "", "the `test case` of the manifest whose configuration is used")
	cmd.Flags().StringVar(&p.pkg, "package", "", "YAML or JSON `file` with the Package or ClusterPackage to render for, and ConfigMaps that it names")
	cmd.Flags().StringVar(&p.config, "config-path", "", "")
	_ = cmd.Flags().MarkHidden("config-path") // Package Operator's name of --config
	cmd.MarkFlagsMutuallyExclusive("config", "config-path", "config-testcase", "package")
	for _, flag := range []string{"cluster", "namespace", "component"} {
		cmd.MarkFlagsMutuallyExclusive(flag, "package")
	}
	_ = cmd.RegisterFlagCompletionFunc("component", completeFrom(content.ComponentsOf))
	_ = cmd.RegisterFlagCompletionFunc("config-testcase", completeFrom(testCasesOf))
}

// check returns an error of usage.
func (p *previewFlags) check() error {
	if p.cluster && p.namespace != "" {
		return errors.New("--cluster and --namespace contradict each other")
	}
	return nil
}

func (p *previewFlags) scope() corev1alpha1.Scope {
	if p.cluster {
		return corev1alpha1.ScopeCluster
	}
	return corev1alpha1.ScopeNamespaced
}

// load renders a package, and returns it with the object that it is rendered for.
func (p *previewFlags) load(
	ctx context.Context, streams genericiooptions.IOStreams, source string, files loader.Files,
) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	if p.pkg == "" && (p.cluster || p.namespace != "") {
		if err := content.CheckScope(source, files, p.component, p.scope()); err != nil {
			return nil, manifestsv1alpha1.TemplateContextPackage{}, err
		}
	}
	opts := loader.PreviewOptions{
		Component: p.component, TestCase: p.testCase, Cluster: p.cluster, Namespace: p.namespace,
		LockedImages: p.locked && p.testCase == "", ImageOverride: p.override, Rewrite: p.rewrite,
	}
	var err error
	if opts.Config, err = content.ReadConfig(p.config, streams.In); err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	pkg, object, err := p.preview(ctx, streams, files, opts)
	if err != nil {
		return nil, object, content.Reported(streams, err, "%s in "+source)
	}
	content.PrintFindings(streams.ErrOut, terminal.StylesFor(streams.ErrOut), content.FindingsOf(nil, pkg.Warnings))
	return pkg, object, nil
}

func (p *previewFlags) preview(
	ctx context.Context, streams genericiooptions.IOStreams, files loader.Files, opts loader.PreviewOptions,
) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	if p.pkg != "" {
		return p.loadFor(ctx, files, streams.In)
	}
	return loader.Preview(ctx, files, opts)
}

// completeFrom completes a flag with names in the folder of the first argument.
func completeFrom(names func(loader.Files) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || !content.IsPath(args[0]) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		files, err := content.ReadFolder(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(files), cobra.ShellCompDirectiveNoFileComp
	}
}

func testCasesOf(files loader.Files) []string {
	result, _ := manifest.Read(files, "")
	if result == nil {
		return nil
	}
	var names []string
	for _, tc := range result.Manifest.Test.Template {
		names = append(names, tc.Name)
	}
	return names
}

func (p *previewFlags) loadFor(ctx context.Context, files loader.Files, stdin io.Reader) (*loader.Package, manifestsv1alpha1.TemplateContextPackage, error) {
	pkg, get, err := readPackage(p.pkg, stdin)
	if err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	values, err := sources.Read(ctx, get, pkg.PackageSpec(), pkg.GetNamespace())
	if err != nil {
		return nil, manifestsv1alpha1.TemplateContextPackage{}, err
	}
	opts := sources.Options(pkg, values)
	opts.ImageOverride, opts.Rewrite = p.override, p.rewrite
	loaded, err := loader.Load(ctx, files, opts)
	return loaded, opts.Package, err
}

// readPackage also returns the ConfigMaps in the same file.
func readPackage(path string, stdin io.Reader) (corev1alpha1.GenericPackage, sources.Get, error) {
	name, data, err := content.ReadInput(path, stdin)
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
