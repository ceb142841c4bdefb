package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{newInstall(on), newUpgrade(on), newList(on), newDelete(on)}
}

// installCommand is kubectl package install.
type installCommand struct {
	command.Command
	registry content.RegistryFlags
	spec     desired.SpecFlags
	choice   desired.ChoiceFlags
	values   desired.ValuesFlags
	needs    desired.DependencyFlags
	target   desired.TargetFlags
	secrets  desired.PullSecretFlags
	account  string
	// downgrade allows a version below the one that was chosen last.
	downgrade bool
}

// newInstall returns the command install.
func newInstall(on command.Command) *cobra.Command {
	c := &installCommand{Command: on}
	cmd := command.Runs(&cobra.Command{
		Use:   "install PACKAGE[/VERSION]|IMAGE [NAME]",
		Short: "Install or change a package, and watch its rollout",
		Long: `Install a package, and watch its rollout until it is available. PACKAGE is a package of a repository,
in the highest version that --version allows, or PACKAGE/VERSION. IMAGE names its registry. NAME defaults to
the name of the package. If NAME exists, it is changed, and fields without a flag stay.

Dependencies are installed first; --override changes one of them. --values are kept in a ConfigMap
NAME-values, or with --sensitive in a Secret. All checks precede the first write.

Exits with 1, and names the cause, if the package is invalid, stuck or not available in time. An
interrupt ends the watching, not the rollout.

Versions and dependencies: docs/dependencies.md. Adoption: docs/concepts.md#claims`,
		Example: `  # A package of a repository, with values
  kubectl package install shop.example.com shop -n shop --version '>=1.2, <2' --values shop.yaml

  # An image, into the cluster, under a name of your own
  kubectl package install registry.example.com/cert-operator:v1.2.0 cert --cluster`,
		Args:              command.Takes("PACKAGE|IMAGE", "[NAME]"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, c.wanted, c.run, c.check)

	c.Connects(cmd)
	c.spec.Add(cmd, "install")
	c.choice.Add(cmd)
	c.values.Add(cmd)
	c.needs.Add(cmd)
	cmd.Flags().StringVar(&c.account, "service-account", "", "create and change the objects of the package as the ServiceAccount with this `name`")
	c.target.Add(cmd)
	c.secrets.Add(cmd)
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until the package is available")
	c.AddYes(cmd)
	c.registry.Add(cmd)

	return cmd
}

// check returns an error of usage.
func (c *installCommand) check() error {
	if c.values.File != "" && c.spec.Config != "" {
		return errors.New("--values and --config contradict each other: --values are kept in an object of their own, --config in the package itself")
	}
	return cmp.Or(c.choice.Check(), c.values.Check(), c.needs.Check())
}

// wanted reads the package that arguments and flags describe.
func (c *installCommand) wanted(args []string) (desired.Package, error) {
	w := desired.Package{Component: c.spec.Component, ChangesComponent: c.spec.Given("component"), Adopts: c.spec.Adopt, Account: c.account}
	c.secrets.Into(&w)
	var err error
	if w.Target, err = c.target.Reference(c.account); err != nil {
		return w, err
	}

	pkg, image, err := c.choice.PackageOrImage(args[0])
	switch {
	case err != nil:
		return w, err
	case image != nil:
		w.Image, w.Name = args[0], cluster.Name{Name: content.BaseName(image)}
	default:
		w.Ref, w.Name = c.choice.Reference(pkg), cluster.Name{Name: pkg}
	}

	if len(args) > 1 {
		if w.Name, err = cluster.ParseName(args[1]); err != nil {
			return w, err
		}
	}

	if w.Name, err = w.Name.Scoped(args[len(args)-1], c.spec.Cluster); err != nil {
		return w, err
	}
	w.Name.Scope = cmp.Or(w.Name.Scope, corev1alpha1.ScopeNamespaced)
	if problems := validation.IsDNS1123Subdomain(w.Name.Name); len(problems) > 0 {
		return w, fmt.Errorf("NAME %q cannot be the name of a package: %s", w.Name.Name, problems[0])
	}

	return w, nil
}

// run checks the package completely, and installs or changes it.
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
	old, err := cl.Read(ctx, target)
	switch {
	case apierrors.IsNotFound(err) && !cluster.Unserved(err):
		old = nil
	case err != nil:
		return cl.Explain("cannot read "+target.String(), err)
	}

	if err := c.needs.Into(&want); err != nil {
		return err
	}
	image, follows := want.Image, ""
	if want.Ref != nil {
		if old != nil && !c.choice.Given() && desired.SamePackage(old.PackageSpec().PackageRef, want.Ref) {
			want.Ref = old.PackageSpec().PackageRef // as with an image, fields without a flag stay
		}
		found, err := c.choose(ctx, cl, target, old, &want, values)
		if err != nil {
			return err
		}
		image, follows = found.Version().Version.Image, found.Name
	}

	if err := c.checkImage(ctx, cl, target, image, old, want, values); err != nil {
		return err
	}
	if old != nil {
		if err := desired.Changeable(target, old, want); err != nil {
			return err
		}
		if patch, _ := want.Difference(old.PackageSpec()); len(patch) > 0 {
			if err := c.confirmChange(target, old, want, follows); err != nil {
				return err
			}
		}
	}
	return want.Install(ctx, &c.Command, cl, target, old, values)
}

// choose chooses the version of a package, and checks its dependencies and values before the first
// write. It also records the version that --allow-downgrade applies to.
func (c *installCommand) choose(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want *desired.Package, values *desired.Values,
) (*desired.Chosen, error) {
	target := want.Target
	if old != nil {
		target = old.PackageSpec().TargetRef
	}
	choose := desired.ChooserFor(cl, t.Namespace).At(target)
	name, err := desired.NameFor(old, want.Ref)
	if err != nil {
		return nil, err
	}
	request := choose.RequestFor(ctx, old, want.Ref, name)
	refuses := !request.AllowDowngrade
	request.AllowDowngrade = c.downgrade || request.AllowDowngrade
	found, err := choose.MustChoose(ctx, name, request, desired.Kept(old, want.Ref, request))
	if err != nil {
		return nil, err
	}

	if last := request.LastAttempted; found.Kept == nil && refuses && last != "" && desired.CompareVersions(found.Version().Version.Version, last) < 0 {
		want.DowngradeFrom = last
	}
	want.Version, want.Keeps = found.Version().Version.Version, found.Kept != nil
	// The manager would report an unknown override only after the change.
	if err := desired.CheckDependencies(&found.Version().Version, want.Overrides); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	return found, desired.CheckValues(ctx, t, found, old, want, values)
}

// warn prints warnings to standard error.
func (c *installCommand) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("warning: "+warning))
	}
}

// confirmChange asks before a change that probably was not intended: another package, another
// repository, or another way to follow versions.
func (c *installCommand) confirmChange(t progress.Target, installed corev1alpha1.GenericPackage, want desired.Package, follows string) error {
	what, old, was := "", installed.PackageSpec(), offers.NameOf(installed)
	switch {
	case want.Ref != nil && old.PackageRef == nil:
		what = fmt.Sprintf("%s is installed from the image %s and would follow the offers of repositories for %s", t, old.Image, follows)
	case want.Ref != nil && was != "" && was != follows:
		what = fmt.Sprintf("%s is the package %s and would change to another one, %s", t, was, follows)
	case want.Ref == nil && old.PackageRef != nil:
		what = fmt.Sprintf("%s follows the offers of repositories for %s and would stay at the image %s", t, cmp.Or(was, progress.Subject(old.PackageRef)), want.Image)
	case want.Ref == nil:
		what = unexpectedImage(t, old.Image, want.Image)
	}

	if what == "" {
		return nil
	}
	return c.Confirm("Change it anyway?", what)
}

// unexpectedImage describes an image that might belong to another package, because it is in another
// repository or has no tag.
func unexpectedImage(t progress.Target, old, wanted string) string {
	was, err := name.ParseReference(old)
	is, err2 := name.ParseReference(wanted)
	switch {
	case err2 != nil || err == nil && was.Name() == is.Name():
		return ""
	case err != nil:
		return fmt.Sprintf("%s does not name its image, and would be installed from %s", t, is.Name())
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
// before the first write. The manager checks images that cannot be pulled from here.
func (c *installCommand) checkImage(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, image string, old corev1alpha1.GenericPackage, want desired.Package, values *desired.Values,
) error {
	configured := want.Image != "" && (values != nil || want.Config != nil)
	if image == "" || old != nil && !configured {
		return nil
	}
	// An unreachable registry must not delay the installation, because the manager pulls the image
	// anyway.
	pulling, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	files, err := c.pull(pulling, cl, image)
	// A refused image would not be installed. An unknown result is left to the manager.
	if refusal := imagepolicy.RefusalOf(err); refusal != nil && !refusal.Unknown() {
		return err
	}

	if err != nil {
		return nil
	}
	// The scope of an installed package was accepted before.
	if old == nil {
		if err := content.CheckScope(cmp.Or(want.Image, want.Name.Name), files, want.Component, want.Name.Scope); err != nil {
			return err
		}
	}

	result := content.ManifestOf(files, want.Component)
	if !configured || result == nil {
		return nil
	}
	check := desired.ValuesCheck{Target: t, What: image, See: "kubectl package inspect " + image, Schema: result.Manifest.Spec.Config.OpenAPIV3Schema, Lenient: !result.Strict}

	return check.Run(ctx, old, &want, values)
}

// upgradeCommand is kubectl package upgrade.
type upgradeCommand struct{ installCommand }

// newUpgrade returns the command upgrade.
func newUpgrade(on command.Command) *cobra.Command {
	c := &upgradeCommand{installCommand{Command: on}}
	c.spec.Given = func(string) bool { return false }
	cmd := c.About(&cobra.Command{
		Use:   "upgrade NAME",
		Short: "Upgrade an installed package to another version, or change its values (a lock file: update)",
		Long: `Change the versions that a package takes from its repositories, or its values, and watch the rollout.
Without flags it is upgraded to the highest version that it allows. Fields without a flag stay. For other
fields, or a package by image, use install.

Version and given values are checked before the first write. A version lower than the one chosen last
is refused without --allow-downgrade.`,
		Example: `  kubectl package upgrade shop --version '>=1.2, <2'`,
		Args:    command.Takes("NAME"),
	}, command.PackageName, c.run, c.choice.Check, c.values.Check, c.needs.Check)
	c.choice.Add(cmd)
	c.values.Add(cmd)
	c.needs.Add(cmd)
	c.secrets.Add(cmd)
	cmd.Flags().BoolVar(&c.downgrade, "allow-downgrade", false, "allow a version below the one that was chosen last, only this time")
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until the package is available")

	return cmd
}

// run changes the selection of versions, the values or the dependencies of a package.
func (c *upgradeCommand) run(ctx context.Context, n cluster.Name) error {
	values, err := c.values.Read(c.Streams.In)
	if err != nil {
		return err
	}
	cl, target, old, err := c.Find(ctx, n)
	if err != nil {
		return err
	}

	ref := old.PackageSpec().PackageRef
	if ref == nil {
		return fmt.Errorf("%s is installed from the image %s, and follows no repository. Change it: kubectl package install IMAGE %s",
			target, old.PackageSpec().Image, target.Flags())
	}
	want := desired.Package{Ref: c.choice.Over(ref)}
	c.secrets.Into(&want)
	if err := c.needs.Into(&want); err != nil {
		return err
	}

	found, err := c.choose(ctx, cl, target, old, &want, values)
	if err != nil {
		return err
	}
	patch, _ := want.Difference(old.PackageSpec())
	installed := old.PackageStatus().Resolved
	moves := installed == nil || installed.Version != found.Version().Version.Version
	// Nothing in the spec changes. A newer version or a failed step is then a reason for a retry.
	if want.DowngradeFrom == "" && len(patch) == 0 && values == nil {
		switch s := progress.Of(progress.Snapshot{Target: target, Package: old}); {
		case found.Kept != nil:
			return found.Kept
		case moves || desired.Fails(target, old):
			want.Retries = true
		case s.Awaiting != "":
			return fmt.Errorf("%s: %s", target, progress.CauseOf(s).Line())
		default:
			fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("%s is already at %s, the highest version that it allows", target, installed.Version)))
			return nil
		}
	}

	return want.Install(ctx, &c.Command, cl, target, old, values)
}
