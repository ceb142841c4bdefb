package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// kickstartCommand is kubectl package kickstart.
type kickstartCommand struct {
	streams    genericiooptions.IOStreams
	folder     string
	registry   content.RegistryFlags
	files      []string
	bundle     string
	namespace  string
	parameters []string
	version    string
	scope      string
	namespaces bool
	keep       []string
	recreate   []string
}

// newKickstart returns the command kickstart.
func newKickstart(streams genericiooptions.IOStreams) *cobra.Command {
	c := kickstartCommand{streams: streams}
	cmd := command.Runs(&cobra.Command{
		Use:   "kickstart PKG_NAME",
		Short: "Create a package from Kubernetes objects or a rendered Helm chart",
		Long: `Turn Kubernetes objects into a package: a folder with a manifest, objects in phases by their kinds,
probes, and a test case. PKG_NAME is the folder. Its last part is the name of the package.

Objects come from -f (files, folders, patterns, URLs, - for standard input) or from a bundle of the
Operator Lifecycle Manager (-b). Fields that an API server or a controller sets are removed, so the
output of kubectl get -o yaml works. Values of Secrets and the fields of -p become configuration.

Rules of phases, namespaces and Helm hooks, and how to take over a new release:
docs/packages/kickstart.md`,
		Example: `  helm template cert-manager jetstack/cert-manager | kubectl package kickstart cert-manager -f -
  kubectl package kickstart shop -f deploy/ -f 'crds/*.yaml' -p replicas,images`,
		Args: command.Takes("PKG_NAME"),
	}, c.options, c.run)

	cmd.Flags().StringArrayVarP(&c.files, "filename", "f", nil, "read objects from this `file`, folder, pattern or URL, - for standard input; repeatable")
	cmd.Flags().StringVarP(&c.bundle, "bundle", "b", "", "read this bundle `image` of the Operator Lifecycle Manager (registry+v1), and name the package after it")
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "", "put objects without a namespace into this `namespace`")
	cmd.Flags().StringSliceVarP(&c.parameters, "parametrize", "p", nil, "turn these `fields` into configuration: namespaces, replicas, tolerations, nodeselectors, resources, env, images, all")
	cmd.Flags().StringVar(&c.version, "version", "", "set the `version` of the package (default: the chart's)")
	cmd.Flags().StringVar(&c.scope, "scope", "", "set the `scope` of the package, Namespaced or Cluster (default: the one that the objects allow)")
	cmd.Flags().BoolVar(&c.namespaces, "add-namespaces", true, "add the Namespaces of objects that are not in the input")
	cmd.Flags().StringSliceVar(&c.keep, "keep", nil, "keep these `kinds` when the package is deleted: crds")
	cmd.Flags().StringSliceVar(&c.recreate, "recreate", nil, "delete and recreate these `kinds` when an immutable field changes: jobs")
	c.registry.Add(cmd)
	for flag, values := range map[string][]string{"scope": {"Namespaced", "Cluster"}, "keep": {keepCRDs}, "recreate": {recreateJobs}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}

	return cmd
}

// Values of --keep and --recreate.
const (
	keepCRDs     = "crds"
	recreateJobs = "jobs"

	// lockFile is the file with the digests of a package's images.
	lockFile = "manifest.lock.yaml"
)

// options checks the flags, and returns the options of the package. Errors are errors of usage.
func (c *kickstartCommand) options(args []string) (kickstart.Options, error) {
	c.folder = filepath.Clean(args[0])
	opts := kickstart.Options{Name: filepath.Base(c.folder), Namespace: c.namespace, NoNamespaces: !c.namespaces}
	if err := checkName(opts.Name); err != nil {
		return opts, err
	}
	if c.namespace != "" {
		if problems := validation.IsDNS1123Label(c.namespace); len(problems) > 0 {
			return opts, fmt.Errorf("%q cannot be a namespace: %s", c.namespace, problems[0])
		}
	}

	if len(c.files) == 0 && c.bundle == "" {
		return opts, errors.New("there are no objects: name files, folders or URLs with -f, or standard input with -f -")
	}
	if err := c.kinds(&opts); err != nil {
		return opts, err
	}

	var err error
	opts.Parameters, err = kickstart.ParseParameters(c.parameters)

	return opts, err
}

// kinds checks the version, the scope, and the kinds that flags name.
func (c *kickstartCommand) kinds(opts *kickstart.Options) error {
	opts.Version = strings.TrimPrefix(c.version, "v")
	if c.version != "" {
		if _, err := semver.StrictNewVersion(opts.Version); err != nil {
			return fmt.Errorf("--version %q is not a semantic version: write it as 1.2.3 or 1.2.3-rc.1", c.version)
		}
	}

	for _, scope := range []corev1alpha1.Scope{"", corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		if strings.EqualFold(c.scope, string(scope)) {
			opts.Scope = scope
		}
	}

	if c.scope != "" && opts.Scope == "" {
		return fmt.Errorf("unknown --scope %q: choose Namespaced or Cluster", c.scope)
	}
	if opts.Scope == corev1alpha1.ScopeNamespaced && c.namespace != "" {
		return errors.New("--namespace and --scope Namespaced contradict each other: such a package is for any namespace")
	}

	for _, kind := range c.keep {
		if kind != keepCRDs {
			return fmt.Errorf("unknown --keep %q: choose %s", kind, keepCRDs)
		}
		opts.KeepCRDs = true
	}

	for _, kind := range c.recreate {
		if kind != recreateJobs {
			return fmt.Errorf("unknown --recreate %q: choose %s", kind, recreateJobs)
		}
		opts.RecreateJobs = true
	}

	return nil
}

// run reads the objects, makes the package, and writes it to a new folder.
func (c *kickstartCommand) run(ctx context.Context, opts kickstart.Options) error {
	// Lstat also finds a symbolic link that leads nowhere.
	if _, err := os.Lstat(c.folder); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists: name a new folder, or remove this one", c.folder)
	}
	inputs, err := content.NewInputs(c.streams.In).All(ctx, c.files)
	if err != nil {
		return err
	}

	var notes []string
	if c.bundle != "" {
		bundle, err := c.readBundle(ctx)
		if err != nil {
			return err
		}
		inputs, notes = append(inputs, bundle.Inputs...), bundle.Notes
		// A bundle names its package and namespace, so the folder's name is not used.
		opts.Name, opts.Namespace = bundle.Name, bundle.Namespace
	}

	made, err := kickstart.Make(inputs, opts)
	if err != nil {
		return content.Reported(c.streams, err, "%s in the input: nothing was written")
	}
	made.Notes = append(notes, made.Notes...)

	return c.write(ctx, opts, made)
}

// write writes a new package, with its fixtures if the package is valid.
func (c *kickstartCommand) write(ctx context.Context, opts kickstart.Options, made *kickstart.Result) error {
	// The package is checked with a provisional lock and written in any case, so that the author
	// can correct it.
	checked := maps.Clone(made.Files)
	if made.ProvisionalLock != nil {
		checked[lockFile] = made.ProvisionalLock
	}
	found, err := (&checkFlags{}).validate(ctx, "", checked)
	if err != nil {
		return err
	}
	if fixtures, err := testrunner.Fixtures(ctx, checked); err == nil {
		maps.Copy(made.Files, fixtures)
	}
	if err := content.WriteFolder(c.folder, made.Files); err != nil {
		return err
	}

	c.print(opts.Name, made)
	content.PrintFindings(c.streams.ErrOut, terminal.StylesFor(c.streams.ErrOut), found)
	if !found.Valid {
		return fmt.Errorf("%s in the new package %s: correct them there", content.Problems(len(found.Problems)), c.folder)
	}
	return nil
}

// readBundle pulls the two folders of a bundle.
func (c *kickstartCommand) readBundle(ctx context.Context) (*kickstart.Bundle, error) {
	manifests, err := c.registry.PullFrom(ctx, kickstart.BundleManifests, c.bundle, nil)
	if err != nil {
		return nil, err
	}

	ref, err := name.ParseReference(c.bundle)
	if err != nil {
		return nil, err
	}

	// The metadata is pulled by digest, because the tag could move between the two.
	metadata, err := c.registry.PullFrom(ctx, kickstart.BundleMetadata, ref.Context().Digest(manifests.Digest).Name(), nil)
	if err != nil {
		return nil, err
	}
	bundle, err := kickstart.ReadBundle(manifests.Files, metadata.Files, c.namespace)
	if err != nil {
		return nil, fmt.Errorf("the bundle %s cannot be used: %w", c.bundle, err)
	}

	// The bundle's author chose these names, so they are checked like other input.
	if problems := validation.IsDNS1123Label(bundle.Name); len(problems) > 0 {
		return nil, fmt.Errorf("the bundle %s is called %q, which cannot be the name of a package: %s", c.bundle, bundle.Name, problems[0])
	}
	if problems := validation.IsDNS1123Label(bundle.Namespace); len(problems) > 0 {
		return nil, fmt.Errorf("the bundle %s suggests the namespace %q, which is not a valid name: choose another one with --namespace", c.bundle, bundle.Namespace)
	}

	return bundle, nil
}

// print reports the package, and the work that remains for its author.
func (c *kickstartCommand) print(called string, made *kickstart.Result) {
	fmt.Fprintf(c.streams.Out, "Kickstarted the %q package with %d objects.\n", called, made.Objects)
	if len(made.Unprobed) > 0 {
		fmt.Fprintln(c.streams.Out, "No probe is known for these kinds. If there is something to wait for, add one to spec.availabilityProbes:")
		for _, kind := range made.Unprobed {
			fmt.Fprintf(c.streams.Out, "- %s\n", terminal.Line(kind))
		}
	}

	for _, note := range made.Notes {
		fmt.Fprintf(c.streams.ErrOut, "note: %s\n", terminal.Line(note))
	}

	if made.ProvisionalLock != nil {
		fmt.Fprintf(c.streams.Out, "Next, pin its images: kubectl package update %s\n", terminal.Line(c.folder))
	}
}
