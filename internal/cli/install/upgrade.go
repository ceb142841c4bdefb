package install

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

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
Without flags it is upgraded to the highest version that it allows. It has the flags of install, and fields
without a flag stay. To change a package by image, use install.

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
		if !moves && !desired.Fails(target, old) {
			fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("%s is already at %s, the highest version that it allows", target, installed.Version)))
			return nil
		}
		want.Retries = true
	}

	return want.Install(ctx, &c.Command, cl, target, old, values)
}
