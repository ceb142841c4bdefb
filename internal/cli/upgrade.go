package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type upgradeCommand struct {
	installCommand
	downgrade bool
}

func newUpgrade(on command) *cobra.Command {
	c := &upgradeCommand{installCommand: installCommand{command: on}}
	c.spec.given = func(string) bool { return false }
	cmd := c.about(&cobra.Command{
		Use:   "upgrade NAME",
		Short: "Move a package that follows repositories to another version, or give it other values",
		Long: `Change which versions a package takes of what repositories offer, by --version and
--prereleases, or its values, and watch the rollout. Without these, it moves to the highest
version that it allows, if it is not there already. What it has is checked before anything is
written: which version is chosen, and whether the values fit it.

A lower version than the one that was chosen last is refused, unless --allow-downgrade is given.
That holds for this change alone: later the package goes no lower by itself. NAME is the name of a Package in the namespace or of a ClusterPackage,
or package/NAME or clusterpackage/NAME. A package by image is changed by install.`,
		Example: `  kubectl package upgrade shop --version '>=1.2, <2'`,
		Args:    takes("NAME"),
	}, packageName, c.run, c.choice.check, c.values.check, c.needs.check, c.secrets.check)
	c.choice.add(cmd)
	c.values.add(cmd)
	c.needs.add(cmd)
	c.secrets.add(cmd)
	cmd.Flags().BoolVar(&c.downgrade, "allow-downgrade", false, "go to a version below the one that was chosen last, this once")
	c.addWait(cmd, waitTimeout, "watch the rollout until the package is available")
	return cmd
}

func (c *upgradeCommand) run(ctx context.Context, n cluster.Name) error {
	values, err := c.values.read(c.streams.In)
	if err != nil {
		return err
	}
	cl, target, old, err := c.find(ctx, n)
	if err != nil {
		return err
	}
	ref := old.PackageSpec().PackageRef
	if ref == nil {
		return fmt.Errorf("%s is installed from the image %s, and follows no repository. Change it: kubectl package install IMAGE %s",
			target, old.PackageSpec().Image, target.Flags())
	}
	want := wantedPackage{name: cluster.Name{Scope: target.Scope, Name: target.Name}, ref: c.choice.over(ref)}
	c.secrets.into(&want)
	if err := want.depends(target, &c.needs, c.values.dependencies); err != nil {
		return err
	}
	found, err := c.check(ctx, cl, target, old, &want, values)
	if err != nil {
		return err
	}
	patch, _ := difference(old.PackageSpec(), want)
	installed := old.PackageStatus().Resolved
	moves := installed == nil || installed.Version != found.version().Version.Version
	if want.downgradeFrom == "" && len(patch) == 0 && values == nil && len(want.dependencyValues) == 0 {
		if !moves && !fails(target, old) {
			return c.nothing(ctx, cl, target, found)
		}
		want.retries = true
	}
	return c.apply(ctx, cl, target, want, values)
}

func (c *upgradeCommand) check(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want *wantedPackage, values *packageValues,
) (*chosen, error) {
	request := requestFor(old, want)
	refuses := !request.AllowDowngrade
	request.AllowDowngrade = c.downgrade || request.AllowDowngrade
	found, err := chooserFor(cl, t.Namespace).at(old.PackageSpec().TargetRef).mustChoose(ctx, want.ref.Name, request)
	if err != nil {
		return nil, err
	}
	if last := request.LastAttempted; refuses && last != "" && compareVersions(found.version().Version.Version, last) < 0 {
		want.downgradeFrom = last
	}
	if err := checkDependencies(&found.version().Version, want.dependencies); err != nil {
		return nil, fmt.Errorf("%s: %w", want.ref.Name, err)
	}
	return found, checkValues(ctx, cl, t, found, old, want, values)
}

// nothing says that a package is where it can be, and what keeps it from going further.
func (c *upgradeCommand) nothing(ctx context.Context, cl *cluster.Cluster, t progress.Target, found *chosen) error {
	version := found.version().Version.Version
	text := fmt.Sprintf("%s is at %s already, the highest that it allows", t, version)
	_, newest, err := chooserFor(cl, t.Namespace).newest(ctx, found.name)
	if err != nil {
		return err
	}
	if newest != nil && compareVersions(newest.Version.Version, version) > 0 {
		text += fmt.Sprintf("; %s is offered, too: kubectl package upgrade %s --version %s", newest.Version.Version, t.Flags(), newest.Version.Version)
	}
	fmt.Fprintln(c.streams.Out, terminal.Line(text))
	return nil
}

// checkValues compares the values that a package would have with the schema of the version that was chosen for it.
func checkValues(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, found *chosen, old corev1alpha1.GenericPackage, want *wantedPackage, values *packageValues,
) error {
	version := found.version().Version
	schema, err := schemaOf(version.ConfigSchema)
	if err != nil {
		return nil // the manager says what is wrong with it
	}
	check := valuesCheck{cluster: cl, target: t, what: found.name + " " + version.Version, see: "kubectl package values " + found.name + "/" + version.Version + scopeFlag(t.Namespace), schema: schema}
	return check.run(ctx, old, want, values)
}
