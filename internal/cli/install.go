package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

type installCommand struct {
	command
	registry registryFlags
	spec     specFlags
	yes      bool
}

func newInstall(on command) *cobra.Command {
	c := &installCommand{command: on}
	cmd := &cobra.Command{
		Use:   "install IMAGE [NAME]",
		Short: "Install or change a package, and watch its rollout",
		Long: `Install a package image, and watch it being rolled out phase by phase until it is available.

This creates a Package in the namespace, or with --cluster a ClusterPackage. NAME is the last
part of the image's name where it is not given. A package of that name that exists is changed
to this image; its configuration and component stay as they are where no flag names them.
What would be another package, by another repository or by an image without a tag, is asked
for, or wants --yes. What has failed of the package is tried again at once.

Exits with 1 when the package does not become available, and says what it waits for. An
interrupt ends the watching, not the rollout.`,
		Example: `  # Into the namespace shop, with a configuration
  kubectl package install registry.example.com/web:v1.2.0 -n shop --config web.yaml

  # Into the cluster, under a name of your own
  kubectl package install registry.example.com/cert-operator:v1.2.0 cert --cluster`,
		Args:              takes("IMAGE", "[NAME]"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := c.wanted(args)
			if err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), want)
		},
	}
	c.connects(cmd)
	c.spec.add(cmd, "install")
	c.addWait(cmd, waitTimeout, "watch the rollout until the package is available")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	c.registry.add(cmd)
	return cmd
}

type specFlags struct {
	cluster   bool
	component string
	config    string
	adopt     bool
	given     func(flag string) bool
}

// add adds the flags; verb begins their usage.
func (f *specFlags) add(cmd *cobra.Command, verb string) {
	f.given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&f.cluster, "cluster", false, verb+" a ClusterPackage")
	cmd.Flags().StringVar(&f.component, "component", "", "the component to install of a package that has several")
	cmd.Flags().StringVar(&f.config, "config", "", "YAML or JSON `file` with the package's configuration, - for standard input")
	cmd.Flags().BoolVar(&f.adopt, "adopt", false, "take over objects that exist already and that nothing controls (spec.collisionProtection: IfNoController)")
}

// scoped adds the scope of --cluster to the name of arg.
func (f *specFlags) scoped(n cluster.Name, arg string) (cluster.Name, error) {
	if f.cluster && n.Scope == corev1alpha1.ScopeNamespaced {
		return n, fmt.Errorf("%s and --cluster contradict each other", arg)
	}
	if f.cluster {
		n.Scope = corev1alpha1.ScopeCluster
	}
	return n, nil
}

func (c *installCommand) wanted(args []string) (wantedPackage, error) {
	w := wantedPackage{image: args[0], component: c.spec.component, changesComponent: c.spec.given("component"), adopts: c.spec.adopt}
	ref, err := imageReference("IMAGE", args[0])
	if err != nil {
		return w, err
	}
	w.name = cluster.Name{Name: baseName(ref)}
	if len(args) > 1 {
		if w.name, err = cluster.ParseName(args[1]); err != nil {
			return w, err
		}
	}
	if w.name, err = c.spec.scoped(w.name, args[len(args)-1]); err != nil {
		return w, err
	}
	w.name.Scope = cmp.Or(w.name.Scope, corev1alpha1.ScopeNamespaced)
	if problems := validation.IsDNS1123Subdomain(w.name.Name); len(problems) > 0 {
		return w, fmt.Errorf("NAME %q cannot be the name of a package: %s", w.name.Name, problems[0])
	}
	return w, nil
}

// baseName is the last part of an image's path as a Kubernetes name.
func baseName(ref name.Reference) string {
	path := ref.Context().RepositoryStr()
	return strings.ReplaceAll(path[strings.LastIndex(path, "/")+1:], "_", "-")
}

func (c *installCommand) run(ctx context.Context, want wantedPackage) (err error) {
	if want.config, err = readConfig(c.spec.config, c.streams.In); err != nil {
		return err
	}
	cl, err := c.connect()
	if err != nil {
		return err
	}
	target := cl.Target(want.name.Scope, want.name.Name)
	want.beforeCreate = func(ctx context.Context) error { return c.checkImage(ctx, want) }
	want.beforeChange = func(old *corev1alpha1.PackageSpec) error { return c.confirmImage(target, old, want.image) }
	done, err := applyPackage(ctx, cl, target, want)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" "+done.what))
	if !c.wait {
		return nil
	}
	return c.follow(ctx, cl, target, done, nil)
}

// follow waits until an applied package is available.
func (c *command) follow(
	ctx context.Context, cl *cluster.Cluster, target progress.Target, done applied, refine func(context.Context, progress.Snapshot) progress.Snapshot,
) error {
	w := waiter{
		streams: c.streams, cluster: cl, target: target, uid: done.pkg.GetUID(), title: "Installing", failing: "is not available",
		before: progress.State{Target: target}, assess: (&progress.Install{Retry: done.retry}).Assess, timeout: c.timeout, refine: refine,
	}
	if done.before != nil {
		w.title, w.before = "Updating", progress.Before(progress.Snapshot{Target: target, Package: done.before})
	}
	state, elapsed, err := w.run(ctx)
	if err != nil {
		return err
	}
	what := strings.TrimSpace(state.Package + " " + state.Version)
	if what != "" {
		what += ", "
	}
	fmt.Fprintf(c.streams.Out, "%s is available: %srevision %d, after %s\n",
		terminal.Line(target.String()), what, state.Revision, progress.Elapsed(elapsed))
	return nil
}

func (c *installCommand) confirmImage(t progress.Target, old *corev1alpha1.PackageSpec, wanted string) error {
	what := unexpectedImage(t, old.Image, wanted)
	if what == "" || c.yes {
		return nil
	}
	fmt.Fprintln(c.streams.ErrOut, terminal.Line(what))
	return confirm(c.streams, "Change it all the same?")
}

// unexpectedImage describes an image that may be of another package: of another repository, or
// without a tag.
func unexpectedImage(t progress.Target, old, wanted string) string {
	was, err := name.ParseReference(old)
	is, err2 := name.ParseReference(wanted)
	switch {
	case err2 != nil || err == nil && was.Name() == is.Name():
		return ""
	case err != nil:
		return fmt.Sprintf("%s is not installed from an image that it names, and would be from %s", t, is.Name())
	case was.Context().Name() != is.Context().Name():
		return fmt.Sprintf("%s is installed from %s and would change to another repository, %s", t, old, is.Name())
	}
	if base := wanted[strings.LastIndex(wanted, "/")+1:]; !strings.ContainsAny(base, ":@") {
		return fmt.Sprintf("%s is installed from %s and would change to %s, because %s names no tag", t, old, is.Name(), wanted)
	}
	return ""
}

// checkScope returns an error that names the right flag if a package does not allow a scope.
func checkScope(source string, files loader.Files, component string, scope corev1alpha1.Scope) error {
	parts := loader.Parts(files)
	i := slices.IndexFunc(parts, func(p loader.Part) bool { return p.Component == component })
	if i < 0 {
		return nil
	}
	result, _ := manifest.Read(parts[i].Files, component)
	if result == nil {
		return nil
	}
	namespaced := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeNamespaced)
	cluster := slices.Contains(result.Manifest.Spec.Scopes, manifestsv1alpha1.PackageManifestScopeCluster)
	switch {
	case scope == corev1alpha1.ScopeNamespaced && cluster && !namespaced:
		return fmt.Errorf("%s can be installed as a ClusterPackage only: add --cluster", source)
	case scope == corev1alpha1.ScopeCluster && namespaced && !cluster:
		return fmt.Errorf("%s can be installed as a Package only, in a namespace: leave out --cluster", source)
	}
	return nil
}

// checkImage checks the scope before creation; the manager checks images that cannot be pulled
// from here.
func (c *installCommand) checkImage(ctx context.Context, want wantedPackage) error {
	ctx, cancel := context.WithTimeout(ctx, limits.ScopeCheck)
	defer cancel()
	files, err := c.registry.pull(ctx, want.image)
	if err != nil {
		return nil
	}
	return checkScope(want.image, files, want.component, want.name.Scope)
}
