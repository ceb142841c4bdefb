package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

type installCommand struct {
	command.Command
	registry content.RegistryFlags
	spec     desired.SpecFlags
	choice   desired.ChoiceFlags
	values   desired.ValuesFlags
	needs    desired.DependencyFlags
	target   desired.TargetFlags
	secrets  desired.PullSecretFlags
	name     string
	account  string
	yes      bool
	// follows is the name of the package that packageRef leads to, once it was looked for.
	follows string
}

func newInstall(on command.Command) *cobra.Command {
	c := &installCommand{Command: on}
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
interrupt ends the watching, not the rollout.

It fails, with the culprit in words, at once if the package is invalid, paused or deleted; after 5 seconds if it
is stuck, as by an image that does not exist or an object of another owner; after 15 seconds if the registry
cannot be reached; and after --timeout if a phase does not become ready. A cause that several objects share is
printed once, with the first three names. In phases of up to 20 objects each is named; the progress of larger
ones is printed in tenths. Single objects are shown to those who may read ObjectSets.

Where no version is taken the error says of each why; values name the key that is wrong. A Secret with values of
a ClusterPackage is in the manager's namespace. What it was changed to is said first: created, changed, or is as
wanted already. An unsupported scope is refused before anything is created if the image can be pulled from here
within 5 seconds; else the status of the package reports it.

--override NAME=JSON (or --override:NAME=JSON) has package{name, version, prereleases} in the place of what the
author wrote, field by field, and configFrom, which is added. Names that an offered version does not depend on are
refused. --adopt sets spec.collisionProtection: IfNoController, which the package keeps; plan --adopt shows what
that means (docs/concepts.md#claims). --pull-secret is for the registry of the package (spec.imagePullSecrets);
that of a repository is for the repository alone. Without --version any release is taken.
--api is the only package that repositories offer with that API, in the place of PACKAGE, and the only argument is then
NAME; it stays whatever is offered later (docs/catalogue.md#by-the-api-that-is-needed).`,
		Example: `  # What a repository offers, with values
  kubectl package install shop.example.com shop -n shop --version '>=1.2, <2' --values shop.yaml

  # An image, into the cluster, under a name of your own
  kubectl package install registry.example.com/cert-operator:v1.2.0 cert --cluster`,
		Args:              c.choice.Takes("PACKAGE|IMAGE", "[NAME]"),
		ValidArgsFunction: c.CompleteAvailable,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := c.wanted(args)
			if err = cmp.Or(err, c.check()); err != nil {
				return command.UsageError(cmd, err)
			}
			return c.run(cmd.Context(), want)
		},
	}
	c.Connects(cmd)
	c.spec.Add(cmd, "install")
	c.choice.Add(cmd)
	c.choice.AddAPI(cmd)
	c.values.Add(cmd)
	c.needs.Add(cmd)
	cmd.Flags().StringVar(&c.name, "name", "", "the same as NAME")
	cmd.Flags().StringVar(&c.account, "service-account", "", "the `name` of the ServiceAccount that creates and changes the objects of the package")
	c.target.Add(cmd)
	c.secrets.Add(cmd)
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until the package is available")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	c.registry.Add(cmd)
	return cmd
}

func (c *installCommand) check() error {
	if c.values.File != "" && c.spec.Config != "" {
		return errors.New("--values and --config contradict each other: --values are kept in an object of their own, --config in the package itself")
	}
	return cmp.Or(c.choice.Check(), c.values.Check(), c.needs.Check(), c.secrets.Check())
}

func (c *installCommand) wanted(args []string) (desired.Package, error) {
	w := desired.Package{Component: c.spec.Component, ChangesComponent: c.spec.Given("component"), Adopts: c.spec.Adopt, Account: c.account}
	c.secrets.Into(&w)
	var err error
	if w.Target, err = c.target.Reference(c.account); err != nil {
		return w, err
	}
	if w.Ref, err = c.choice.ByAPI(args); err != nil {
		return w, err
	}
	if w.Ref != nil {
		args = []string{"", args[0]}
	} else if err := c.source(args[0], &w); err != nil {
		return w, err
	}
	if c.name != "" {
		if len(args) > 1 && args[1] != c.name {
			return w, fmt.Errorf("%s and --name %s contradict each other", args[1], c.name)
		}
		args = []string{args[0], c.name}
	}
	if len(args) > 1 {
		if w.Name, err = cluster.ParseName(args[1]); err != nil {
			return w, err
		}
	}
	if w.Name, err = c.spec.Scoped(w.Name, args[len(args)-1]); err != nil {
		return w, err
	}
	w.Name.Scope = cmp.Or(w.Name.Scope, corev1alpha1.ScopeNamespaced)
	if problems := validation.IsDNS1123Subdomain(w.Name.Name); len(problems) > 0 {
		return w, fmt.Errorf("NAME %q cannot be the name of a package: %s", w.Name.Name, problems[0])
	}
	return w, nil
}

// source reads the argument PACKAGE|IMAGE.
func (c *installCommand) source(arg string, w *desired.Package) error {
	pkg, image, err := c.choice.PackageOrImage(arg)
	switch {
	case err != nil:
		return err
	case image != nil:
		w.Image, w.Name = arg, cluster.Name{Name: content.BaseName(image)}
	default:
		w.Ref, w.Name = c.choice.Reference(pkg), cluster.Name{Name: pkg}
	}
	return nil
}

func (c *installCommand) run(ctx context.Context, want desired.Package) (err error) {
	if want.Config, err = content.ReadConfig(c.spec.Config, c.Streams.In); err != nil {
		return err
	}
	values, err := c.values.Read(c.Streams.In)
	if err != nil {
		return err
	}
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	target := cl.Target(want.Name.Scope, want.Name.Name)
	if want.Image != "" {
		if err := desired.ChooserFor(cl, target.Namespace).Misread(ctx, "install", want.Image); err != nil {
			return err
		}
	}
	old, err := desired.ReadOld(ctx, cl, target)
	if err != nil {
		return err
	}
	if err := want.Depends(target, &c.needs, c.values.Dependencies); err != nil {
		return err
	}
	prepared, err := c.prepare(ctx, cl, target, old, &want, values)
	if err != nil {
		return err
	}
	if err := c.checkImage(ctx, cl, target, prepared, old, want, values); err != nil {
		return err
	}
	want.BeforeChange = func(old corev1alpha1.GenericPackage) error { return c.confirmChange(target, old, want) }
	return want.Install(ctx, &c.Command, cl, target, values)
}

func (c *installCommand) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("warning: "+warning))
	}
}

func (c *installCommand) confirmChange(t progress.Target, installed corev1alpha1.GenericPackage, want desired.Package) error {
	what, old, was := "", installed.PackageSpec(), offers.NameOf(installed)
	switch {
	case want.Ref != nil && old.PackageRef == nil:
		what = fmt.Sprintf("%s is installed from the image %s and would follow what repositories offer of %s", t, old.Image, c.follows)
	case want.Ref != nil && was != "" && was != c.follows:
		what = fmt.Sprintf("%s is the package %s and would change to another one, %s", t, was, c.follows)
	case want.Ref == nil && old.PackageRef != nil:
		what = fmt.Sprintf("%s follows what repositories offer of %s and would stay at the image %s", t, cmp.Or(was, progress.Subject(old.PackageRef)), want.Image)
	case want.Ref == nil:
		what = unexpectedImage(t, old.Image, want.Image)
	}
	if what == "" || c.yes {
		return nil
	}
	fmt.Fprintln(c.Streams.ErrOut, terminal.Line(what))
	return command.Confirm(c.Streams, "Change it all the same?")
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

// pull reads an image as the manager would.
func (c *installCommand) pull(ctx context.Context, cl *cluster.Cluster, ref string) (loader.Files, error) {
	images, err := desired.ReadImages(ctx, cl, corev1alpha1.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	trusted, err := images.Trust(ctx, &c.registry, ref, nil)
	if err != nil {
		return nil, err
	}
	c.warn(trusted.Warnings)
	image, err := c.registry.PullFrom(ctx, "", trusted.Ref, trusted.Keys)
	if err != nil {
		return nil, err
	}
	return image.Files, nil
}

// checkImage checks the scope, and the configuration of a package that is named by its image,
// before anything is written; the manager checks images that cannot be pulled from here.
func (c *installCommand) checkImage(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, image string, old corev1alpha1.GenericPackage, want desired.Package, values *desired.Values,
) error {
	configured := want.Image != "" && (values != nil || want.Config != nil)
	if image == "" || old != nil && !configured {
		return nil
	}
	pulling, cancel := context.WithTimeout(ctx, limits.ScopeCheck)
	defer cancel()
	files, err := c.pull(pulling, cl, image)
	if refusal := imagepolicy.RefusalOf(err); refusal != nil && !refusal.Unknown() {
		return err
	}
	if err != nil {
		return nil
	}
	if old == nil {
		if err := content.CheckScope(cmp.Or(want.Image, want.Name.Name), files, want.Component, want.Name.Scope); err != nil {
			return err
		}
	}
	result := content.ManifestOf(files, want.Component)
	if !configured || result == nil {
		return nil
	}
	check := desired.ValuesCheck{Cluster: cl, Target: t, What: image, See: "kubectl package inspect " + image, Schema: result.Manifest.Spec.Config.OpenAPIV3Schema}
	return check.Run(ctx, old, &want, values)
}
