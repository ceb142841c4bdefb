package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	choice   choiceFlags
	values   valuesFlags
	needs    dependencyFlags
	target   targetFlags
	secrets  pullSecretFlags
	name     string
	account  string
	yes      bool
}

func newInstall(on command) *cobra.Command {
	c := &installCommand{command: on}
	cmd := &cobra.Command{
		Use:   "install PACKAGE[/VERSION]|IMAGE [NAME]",
		Short: "Install or change a package, and watch its rollout",
		Long: `Install a package, and watch it being rolled out phase by phase until it is available: PACKAGE,
which a repository offers (kubectl package available list), in the highest version that
--version allows, now and whenever a higher one is offered, or in the one VERSION after a /; or
an IMAGE, which has a /, a : or an @ in its name. What may be either is refused.

This creates a Package in the namespace, or with --cluster a ClusterPackage. NAME is that of the
package, or the last part of the image's name, where it is not given. A package of that name
that exists is changed to this one; its configuration and component stay as they are where no
flag names them. What would be another package, by another name, repository of images or by an
image without a tag, is asked for, or wants --yes. What has failed of the package is tried again
at once.

--values are kept in a ConfigMap NAME-values, with --sensitive in a Secret, which go with the
package. They and --config are checked before anything is written, as are the versions.

What the package depends on is installed first. --override changes a single dependency; a document
of --values that begins with the comment # dep=NAME has the values of the package that is installed
for it, in an object NAME.DEPENDENCY-values.

Exits with 1 when the package does not become available, and says what it waits for. An
interrupt ends the watching, not the rollout.`,
		Example: `  # What a repository offers, with values
  kubectl package install shop.example.com shop -n shop --version '>=1.2, <2' --values shop.yaml

  # An image, into the cluster, under a name of your own
  kubectl package install registry.example.com/cert-operator:v1.2.0 cert --cluster`,
		Args:              takes("PACKAGE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.completeAvailable,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := c.wanted(args)
			if err = cmp.Or(err, c.check()); err != nil {
				return usageError(cmd, err)
			}
			return c.run(cmd.Context(), want)
		},
	}
	c.connects(cmd)
	c.spec.add(cmd, "install")
	c.choice.add(cmd)
	c.values.add(cmd)
	c.needs.add(cmd)
	cmd.Flags().StringVar(&c.name, "name", "", "the same as NAME")
	cmd.Flags().StringVar(&c.account, "service-account", "", "the `name` of the ServiceAccount that creates and changes the objects of the package")
	c.target.add(cmd)
	c.secrets.add(cmd)
	c.addWait(cmd, waitTimeout, "watch the rollout until the package is available")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	c.registry.add(cmd)
	return cmd
}

func (c *installCommand) check() error {
	if c.values.file != "" && c.spec.config != "" {
		return errors.New("--values and --config contradict each other: --values are kept in an object of their own, --config in the package itself")
	}
	return cmp.Or(c.choice.check(), c.values.check(), c.needs.check(), c.secrets.check())
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
	w := wantedPackage{component: c.spec.component, changesComponent: c.spec.given("component"), adopts: c.spec.adopt, account: c.account}
	c.secrets.into(&w)
	var err error
	if w.target, err = c.target.reference(c.account); err != nil {
		return w, err
	}
	pkg, image, err := c.choice.packageOrImage(args[0])
	switch {
	case err != nil:
		return w, err
	case image != nil:
		w.image, w.name = args[0], cluster.Name{Name: baseName(image)}
	default:
		w.ref, w.name = c.choice.reference(pkg), cluster.Name{Name: pkg}
	}
	if c.name != "" {
		if len(args) > 1 && args[1] != c.name {
			return w, fmt.Errorf("%s and --name %s contradict each other", args[1], c.name)
		}
		args = []string{args[0], c.name}
	}
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
	values, err := c.values.read(c.streams.In)
	if err != nil {
		return err
	}
	cl, err := c.connect()
	if err != nil {
		return err
	}
	target := cl.Target(want.name.Scope, want.name.Name)
	if want.image != "" {
		if err := chooserFor(cl, target.Namespace).misread(ctx, "install", want.image); err != nil {
			return err
		}
	}
	old, err := readOld(ctx, cl, target)
	if err != nil {
		return err
	}
	if err := want.depends(target, &c.needs, c.values.dependencies); err != nil {
		return err
	}
	prepared, err := c.prepare(ctx, cl, target, old, &want, values)
	if err != nil {
		return err
	}
	if err := c.checkImage(ctx, cl, target, prepared, old, want, values); err != nil {
		return err
	}
	want.beforeChange = func(old *corev1alpha1.PackageSpec) error { return c.confirmChange(target, old, want) }
	return c.apply(ctx, cl, target, want, values)
}

// readOld returns nil where there is no package.
func readOld(ctx context.Context, cl *cluster.Cluster, t progress.Target) (corev1alpha1.GenericPackage, error) {
	old, err := cl.Read(ctx, t)
	if apierrors.IsNotFound(err) && !cluster.Unserved(err) {
		return nil, nil
	}
	return old, cl.Explain("cannot read "+t.String(), err)
}

// apply writes values and package, and follows the rollout.
func (c *command) apply(ctx context.Context, cl *cluster.Cluster, target progress.Target, want wantedPackage, values *packageValues) error {
	var writer *valuesWriter
	if values != nil {
		writer = &valuesWriter{cluster: cl, target: target, values: values}
		want.values = values.source(target)
	}
	needs, names := want.dependencyWriters(cl, target)
	all := needs
	if writer != nil {
		all = append(slices.Clone(needs), writer)
	}
	want.beforeWrite = func(ctx context.Context) error { return writeAll(ctx, all) }
	done, err := applyPackage(ctx, cl, target, want)
	if err != nil {
		withdrawAll(ctx, all)
		return err
	}
	if writer != nil && writer.object != nil {
		if err := writer.own(ctx, done.pkg); err != nil {
			return err
		}
		if done, err = noticed(ctx, cl, target, writer, done); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.streams.Out, terminal.Line(target.String()+" "+done.what))
	if !c.wait {
		return nil
	}
	err = c.follow(ctx, cl, target, done, nil)
	return cmp.Or(err, ownDependencyValues(context.WithoutCancel(ctx), cl, target, needs, names))
}

// noticed requests a retry where values have changed and the package has not: its status says when it was looked at again.
func noticed(ctx context.Context, cl *cluster.Cluster, t progress.Target, w *valuesWriter, done applied) (applied, error) {
	if !w.changed {
		return done, nil
	}
	if done.what == "is as wanted already" {
		done.what = "changed: values"
	} else {
		done.what += ", values"
	}
	if done.retry != "" || done.pkg.PackageSpec().Paused {
		return done, nil
	}
	var err error
	done.retry, err = requestRetry(ctx, cl, t, done.pkg)
	return done, err
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

func (c *installCommand) confirmChange(t progress.Target, old *corev1alpha1.PackageSpec, want wantedPackage) error {
	what := ""
	switch {
	case want.ref != nil && old.PackageRef == nil:
		what = fmt.Sprintf("%s is installed from the image %s and would follow what repositories offer of %s", t, old.Image, want.ref.Name)
	case want.ref != nil && old.PackageRef.Name != want.ref.Name:
		what = fmt.Sprintf("%s is the package %s and would change to another one, %s", t, old.PackageRef.Name, want.ref.Name)
	case want.ref == nil && old.PackageRef != nil:
		what = fmt.Sprintf("%s follows what repositories offer of %s and would stay at the image %s", t, old.PackageRef.Name, want.image)
	case want.ref == nil:
		what = unexpectedImage(t, old.Image, want.image)
	}
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

// manifestOf returns the manifest of a component; nil where it cannot be read, as the manager says then.
func manifestOf(files loader.Files, component string) *manifest.Result {
	parts := loader.Parts(files)
	i := slices.IndexFunc(parts, func(p loader.Part) bool { return p.Component == component })
	if i < 0 {
		return nil
	}
	result, _ := manifest.Read(parts[i].Files, component)
	return result
}

// checkScope returns an error that names the right flag if a package does not allow a scope.
func checkScope(source string, files loader.Files, component string, scope corev1alpha1.Scope) error {
	result := manifestOf(files, component)
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

// checkImage checks the scope, and the configuration of what is named by its image, before anything is written; the
// manager checks images that cannot be pulled from here.
func (c *installCommand) checkImage(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, image string, old corev1alpha1.GenericPackage, want wantedPackage, values *packageValues,
) error {
	configured := want.image != "" && (values != nil || want.config != nil)
	if image == "" || old != nil && !configured {
		return nil
	}
	pulling, cancel := context.WithTimeout(ctx, limits.ScopeCheck)
	defer cancel()
	files, err := c.registry.pull(pulling, image)
	if err != nil {
		return nil
	}
	if old == nil {
		if err := checkScope(cmp.Or(want.image, want.name.Name), files, want.component, want.name.Scope); err != nil {
			return err
		}
	}
	result := manifestOf(files, want.component)
	if !configured || result == nil {
		return nil
	}
	check := valuesCheck{cluster: cl, target: t, what: image, see: "kubectl package explain " + image, schema: result.Manifest.Spec.Config.OpenAPIV3Schema}
	return check.run(ctx, old, &want, values)
}
